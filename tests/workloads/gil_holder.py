"""One thread holds the interpreter lock (GIL) while it sleeps; others want it after short pauses.

python gil_holder.py OUT: writes the holder's id, as the kernel has it, as JSON to OUT.
"""

import ctypes
import json
import sys
import threading
import time

usleep = ctypes.PyDLL(None).usleep  # unlike CDLL's, such functions are called with the lock held
ids = {}
done = threading.Event()


def hold():
    ids["holder"] = threading.get_native_id()
    for _ in range(50):
        usleep(20_000)
    done.set()


def want():
    while not done.is_set():
        time.sleep(0.001)


threads = [threading.Thread(target=hold), *(threading.Thread(target=want) for _ in range(3))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
with open(sys.argv[1], "w") as out:
    json.dump(ids, out)
