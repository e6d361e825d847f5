#!/usr/bin/python3
"""Threads of the system's own Python, whose binary has no frame pointers.

    /usr/bin/python3 python_threads.py [--wait] [--linger] [MILLISECONDS=2000]

Truth: each thread works in rounds (a wait of 2 ms, its time measured) for so long, and then stands still where it
waits, while the main thread prints the truth and lingers; `waits` has one record per thread, called by its name:

- `sleep`: time.sleep
- `lock`: threading.Lock.acquire of a lock that somebody has
- `condition`: threading.Condition.wait
- `select`: select.select of a pipe that nobody writes to
- `queue`: queue.SimpleQueue.get
- `extension`: the C library's nanosleep, in a function of C that a ctypes callback calls, below qsort
- `zlib`: compresses, which takes the global lock's owner off it; it never waits of its own will but for that lock
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import queue
import select
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any

import python_workload

ROUND = 0.002
FOREVER = 3600.0

holding = threading.Event()
held: set[str] = set()
waits: dict[str, dict[str, Any]] = {}
gate = threading.Barrier(8)


def stay() -> float:
    """Seconds to wait this time; for ever once everybody is to be held still."""
    if not holding.is_set():
        return ROUND
    held.add(threading.current_thread().name)
    return FOREVER


taken = threading.Lock()
condition = threading.Condition()
nobody_writes, _writer = os.pipe()
empty: queue.SimpleQueue[None] = queue.SimpleQueue()
libc = ctypes.CDLL(None)
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def wait_sleep() -> None:
    time.sleep(stay())


def wait_lock() -> None:
    taken.acquire(timeout=stay())


def wait_condition() -> None:
    with condition:
        condition.wait(stay())


def wait_select() -> None:
    select.select([nobody_writes], [], [], stay())


def wait_queue() -> None:
    with contextlib.suppress(queue.Empty):
        empty.get(timeout=stay())


@COMPARE
def compare(_first: object, _second: object) -> int:
    libc.usleep(int(stay() * 1e6))
    return 0


def wait_extension() -> None:
    libc.qsort((ctypes.c_int * 2)(), 2, 4, compare)


def compress() -> None:
    data = os.urandom(1 << 16)
    zlib.compress(data, 9)
    if stay() == FOREVER:
        time.sleep(FOREVER)


def work(name: str, function: Callable[[], None]) -> None:
    """Runs the thread `name` until the process ends."""
    with open("/proc/thread-self/comm", "w", encoding="ascii") as comm:
        comm.write(name)
    wait = waits[name] = python_workload.wait_record(name)
    gate.wait()
    while True:
        begin = time.monotonic_ns()
        function()
        wait["ns"] += time.monotonic_ns() - begin
        wait["calls"] += 1


JOBS = {
    "sleep": wait_sleep,
    "lock": wait_lock,
    "condition": wait_condition,
    "select": wait_select,
    "queue": wait_queue,
    "extension": wait_extension,
    "zlib": compress,
}


def asleep(tid: int) -> bool:
    with open(f"/proc/self/task/{tid}/stat", encoding="ascii") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "S"


def hold_still() -> None:
    holding.set()
    while len(held) < len(JOBS):
        time.sleep(0.001)
    time.sleep(0.05)  # from its last question to where it waits
    while not all(asleep(wait["tid"]) for wait in waits.values()):
        time.sleep(0.001)


def main() -> None:
    milliseconds = python_workload.begin(2000)
    taken.acquire()
    for name, function in JOBS.items():
        threading.Thread(target=work, args=(name, function), name=name, daemon=True).start()
    while len(waits) < len(JOBS):
        time.sleep(0.001)
    pid = python_workload.get_ready(wait["tid"] for wait in waits.values())
    begin = time.monotonic_ns()
    gate.wait()
    time.sleep(milliseconds / 1000)
    hold_still()
    truth = {"workload": "python_threads", "pid": pid, "begin_ns": begin, "end_ns": time.monotonic_ns()}
    python_workload.tell(truth, waits.values())
    os._exit(0)  # the others stay where they are


if __name__ == "__main__":
    main()
