"""Python functions that come and go while they are read: their processes fork, execute themselves, and are killed.

python python_storm.py SECONDS [END]: all functions of its own have names that begin with `storm_`.
"""

import os
import random
import signal
import sys
import threading
import time

END = float(sys.argv[2]) if len(sys.argv) > 2 else time.time() + float(sys.argv[1])
ARGUMENTS = [sys.executable, __file__, sys.argv[1], str(END)]


def storm_recursion(depth):
    return storm_recursion(depth - 1) if depth else time.sleep(random.random() / 1000)


def storm_grows():
    while time.time() < END:
        storm_recursion(random.randrange(150))


def storm_makes():
    while time.time() < END:
        name = f"storm_made_{random.randrange(1000)}"
        made = {"time": time}
        exec(f"def {name}():\n    time.sleep(0.0005)\n{name}()", made)


def storm_forks():
    while time.time() < END:
        pid = os.fork()
        if pid == 0:
            if random.random() < 0.5:
                os.execv(sys.executable, ARGUMENTS)
            storm_recursion(50)
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(random.random() / 10)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


threads = [threading.Thread(target=each, daemon=True) for each in (storm_grows, storm_makes, storm_grows)]
for each in threads:
    each.start()
if len(sys.argv) > 2:
    storm_grows()
else:
    storm_forks()
