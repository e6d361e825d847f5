"""Threads that hold the interpreter lock (GIL) in known functions, while another one wants it.

python gil_functions.py OUT [turns | changes]: writes the ids of its threads by name, as the kernel has them, as JSON
to OUT. `turns`: two of them sleep with the lock held, each in its own function. `changes`: one of them calls and
returns all the time: `outer_3` calls itself up to 60 times, then `inner_3`. So all numbers in a stack are the same.
"""

import ctypes
import json
import sys
import threading
import time

SECONDS = 1.5
usleep = ctypes.PyDLL(None).usleep  # unlike CDLL's, such functions are called with the lock held
ids = {}
done = threading.Event()


def sleep_with_lock(milliseconds):
    usleep(milliseconds * 1000)


def hog():
    while not done.is_set():
        sleep_with_lock(20)
        time.sleep(0.001)


def other():
    while not done.is_set():
        sleep_with_lock(10)
        time.sleep(0.001)


def want():
    while not done.is_set():
        time.sleep(0.001)


for _number in range(20):
    exec(
        compile(
            f"def inner_{_number}(x):\n    return x + {_number}\n"
            f"def outer_{_number}(level, x):\n"
            f"    return outer_{_number}(level - 1, x) if level else inner_{_number}(x)\n",
            __file__,
            "exec",
        )
    )
OUTERS = [globals()[f"outer_{_number}"] for _number in range(20)]


def change():
    sys.setswitchinterval(50e-6)  # waits are as short: there are many
    x = 0
    while not done.is_set():
        x += 1
        OUTERS[x % 20](x % 61, x)


def run(name, function):
    ids[name] = threading.get_native_id()
    function()


WORK = {"turns": (hog, other, want), "changes": (change, want, want)}
threads = [
    threading.Thread(target=run, args=(f"{function.__name__}{i}", function))
    for i, function in enumerate(WORK[sys.argv[2]])
]
for thread in threads:
    thread.start()
time.sleep(SECONDS)
done.set()
for thread in threads:
    thread.join()
with open(sys.argv[1], "w") as out:
    json.dump(ids, out)
