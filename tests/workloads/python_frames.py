#!/usr/bin/python3
"""Threads that wait below Python functions of many kinds. For any CPython from 3.8 on.

    python3 python_frames.py [--wait] [--linger] [MILLISECONDS=1000]

Truth: each thread works in rounds (a wait of 2 ms in `rest`, its time measured) for so long, and then stands still
there; `waits` has one record per thread, called by its name. `stacks` has the Python functions of each, the outermost
first, as [qualified name, plain name, line], from the interpreter itself. `line` is where rounds wait in `rest`:

- `recursion`: a function that calls itself
- `generator`: a generator, called by a generator expression
- `sorting`: the key function of list.sort
- `method`: a method, called by functools.partial, with a keyword
- `callback`: a function that C code calls, below qsort
- `text`: a function that exec() made
- `coroutine`: a coroutine that awaits another one, in asyncio's loop
- `property`: a property, and __getattr__
"""

from __future__ import annotations

import asyncio
import ctypes
import functools
import os
import sys
import threading
import time

import python_workload

ROUND = 0.002
FOREVER = 3600.0
DEPTH = 12

holding = threading.Event()
held = set()
waits = {}
libc = ctypes.CDLL(None)
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def rest():
    """Waits; for ever once everybody is to be held still."""
    if holding.is_set():
        held.add(threading.current_thread().name)
        time.sleep(FOREVER)
    begin = time.monotonic_ns()
    truth["line"] = sys._getframe().f_lineno + 1
    time.sleep(ROUND)
    wait = waits[threading.current_thread().name]
    wait["ns"] += time.monotonic_ns() - begin
    wait["calls"] += 1


def recursion(depth=DEPTH):
    if depth:
        return recursion(depth - 1)
    return rest()


def produce():
    for i in range(3):
        rest()
        yield i


def generator():
    return sum(i for i in produce())


def by_key(value):
    rest()
    return value


def sorting():
    [3, 1].sort(key=by_key)


class Loader:
    def load(self, *, often):
        for _ in range(often):
            rest()

    @property
    def slow(self):
        return rest()

    def __getattr__(self, name):
        return self.slow


def method():
    functools.partial(Loader().load, often=2)()


@COMPARE
def compare(_first, _second):
    rest()
    return 0


def callback():
    libc.qsort((ctypes.c_int * 2)(), 2, 4, compare)


def text():
    space = {"rest": rest}
    exec("\n\ndef made():\n    rest()\n\nmade()\n", space)


async def inner():
    rest()


async def outer():
    await asyncio.sleep(0)
    await inner()


def coroutine():
    asyncio.run(outer())


def property_():
    return Loader().missing


JOBS = (recursion, generator, sorting, method, callback, text, coroutine, property_)


def work(name, function):
    waits[name] = python_workload.wait_record(name)
    while "begin_ns" not in truth:
        time.sleep(0.001)
    while True:
        function()


def stack(thread):
    """Functions of a thread, outermost first."""
    frames, frame = [], sys._current_frames()[thread.ident]
    while frame:
        code = frame.f_code
        frames.append((getattr(code, "co_qualname", code.co_name), code.co_name, frame.f_lineno))
        frame = frame.f_back
    return frames[::-1]


truth = {}


def main():
    milliseconds = python_workload.begin(1000)
    threads = {}
    for function in JOBS:
        name = function.__name__.rstrip("_") if hasattr(function, "__name__") else "callback"
        threads[name] = threading.Thread(target=work, args=(name, function), name=name, daemon=True)
        threads[name].start()
    while len(waits) < len(JOBS):
        time.sleep(0.001)
    pid = python_workload.get_ready(wait["tid"] for wait in waits.values())
    truth.update({"workload": "python_frames", "pid": pid, "begin_ns": time.monotonic_ns()})
    time.sleep(milliseconds / 1000)
    holding.set()
    while len(held) < len(JOBS):
        time.sleep(0.001)
    time.sleep(0.05)
    truth.update(end_ns=time.monotonic_ns(), version=list(sys.version_info[:3]))
    truth["stacks"] = {name: stack(thread) for name, thread in threads.items()}
    python_workload.tell(truth, waits.values())
    os._exit(0)  # the others stay where they are


if __name__ == "__main__":
    main()
