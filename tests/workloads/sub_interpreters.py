"""Threads in several interpreters of a process (sub-interpreters), which sleep in known functions.

python sub_interpreters.py OUT [idle | nested | other]: writes the ids of its threads, as the kernel has them, as JSON
to OUT; ends when there is a file OUT.end. `idle`: the main thread has made another interpreter, and sleeps in
`asleep`. `nested`: below `use`, it sleeps in `inside` of that interpreter. `other`: it sleeps in `asleep`, while
another thread is in that interpreter.
"""

import json
import os
import sys
import threading
import time

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

END = f"{sys.argv[1]}.end"
CODE = f"""
import os, time
def inside():
    while not os.path.exists({END!r}):
        time.sleep(0.005)
inside()
"""


def asleep():
    while not os.path.exists(END):
        time.sleep(0.005)


def use(interpreter):
    interpreters.run_string(interpreter, CODE)


def tell():
    with open(sys.argv[1], "w") as out:
        json.dump(ids, out)
    print("ready", flush=True)


def work():
    ids["other"] = threading.get_native_id()
    started.set()
    released.wait()
    use(made)


made = interpreters.create()
how = sys.argv[2]
ids = {"main": threading.get_native_id()}
started, released = threading.Event(), threading.Event()
if how == "nested":
    tell()
    use(made)
elif how == "other":
    thread = threading.Thread(target=work)
    thread.start()
    started.wait()
    tell()
    released.set()
    asleep()
    thread.join()
else:
    tell()
    asleep()
