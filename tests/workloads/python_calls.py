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
import os
import termios
import time

import python_workload

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
    rounds = python_workload.begin(20)
    pid = python_workload.get_ready()
    truth = {"workload": "python_calls", "pid": pid, "begin_ns": time.monotonic_ns()}
    for _ in range(rounds):
        load()
        train()
    truth.update(end_ns=time.monotonic_ns(), spans=spans)
    python_workload.tell(truth, [])


if __name__ == "__main__":
    main()
