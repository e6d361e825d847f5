"""Four threads compute in Python: they take turns, because only one at a time may hold the interpreter's lock."""

import os
import sys
import threading


def compute() -> None:
    while True:
        sum(range(1000))


for _ in range(4):
    threading.Thread(target=compute, daemon=True).start()
print(os.getpid(), flush=True)
sys.stdin.read()
os._exit(0)
