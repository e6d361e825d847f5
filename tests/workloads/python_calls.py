#!/usr/bin/python3
"""A thread that calls a C function and makes ioctls below two Python functions. For any CPython from 3.8 on.

    python3 python_calls.py [--wait] [--linger] [ROUNDS=20]

Truth: in each round `main` calls `load` and then `train`. `load` makes one ioctl (TCGETS on /dev/null) and then, on two
lines, two calls of usleep(); `train` makes one call of usleep(), and another one below `step`. `spans` has a record per
call of `load`, `train` and `step` in their order: its name, and when it began and returned, by CLOCK_MONOTONIC.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import sys
import termios
import time

LIMIT_SECONDS = 120
NAP = 500
"""Microseconds."""

libc = ctypes.CDLL(None)
null = os.open("/dev/null", os.O_RDWR)
spans = []


def load():
    begin = time.monotonic_ns()
    with contextlib.suppress(OSError):  # it is not a terminal
        fcntl.ioctl(null, termios.TCGETS, bytes(64))
    libc.usleep(NAP)
    libc.usleep(NAP)
    spans.append(["load", begin, time.monotonic_ns()])


def step():
    begin = time.monotonic_ns()
    libc.usleep(NAP)
    spans.append(["step", begin, time.monotonic_ns()])


def train():
    begin = time.monotonic_ns()
    libc.usleep(NAP)
    step()
    spans.append(["train", begin, time.monotonic_ns()])


def main():
    signal.alarm(LIMIT_SECONDS)
    numbers = [argument for argument in sys.argv[1:] if argument.isdigit()]
    rounds = int(numbers[0]) if numbers else 20
    pid = os.getpid()
    print(json.dumps({"ready": True, "pid": pid, "pids": [pid], "tids": [pid]}), flush=True)
    if "--wait" in sys.argv and not os.read(0, 1):
        sys.exit(1)
    truth = {"workload": "python_calls", "pid": pid, "begin_ns": time.monotonic_ns()}
    for _ in range(rounds):
        load()
        train()
    truth.update(end_ns=time.monotonic_ns(), threads=[], waits=[], spans=spans)
    print(json.dumps(truth), flush=True)
    while "--linger" in sys.argv and os.read(0, 1):
        pass


if __name__ == "__main__":
    main()
