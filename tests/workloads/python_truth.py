#!/usr/bin/python3
"""Six threads of Python whose functions sleep, compute and wait in many ways. For any CPython from 3.8 on.

    python3 python_truth.py [--wait] [--linger] [MILLISECONDS=2000]

Truth: `waits` has one record per function and thread, called `timed_sleeps` and so on like the function that calls it
and reads the clocks: `ns` is how long its calls took by a monotonic clock, `cpu_ns` for how long the thread ran in them
by its own clock, `calls` how many there were. Threads and their functions:

- `sleeps`, `naps`: time.sleep, of 5 and 2 ms, in one thread
- `computes`, `recurses`: loops of Python, which hold the interpreter lock, in one thread
- `takes`, `locks`: a queue that another thread fills, and a lock that it holds
- `runs`, `receives`: a subprocess, and a socket to which another thread writes
- `compresses`, `generates`: zlib, which runs without the interpreter lock, and a generator that sleeps
- `awaits`: coroutines of asyncio
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib

LIMIT_SECONDS = 120
DATA = os.urandom(1 << 18)

calls = {}
batches = queue.Queue()
lock = threading.Lock()
over = threading.Event()
here, there = socket.socketpair()


def sleeps():
    time.sleep(0.005)


def naps():
    time.sleep(0.002)


def computes():
    total = 0
    for i in range(40_000):
        total += i * i
    return total


def recurses(depth=8):
    if depth:
        return recurses(depth - 1)
    return sum(i for i in range(20_000))


def takes():
    return batches.get(timeout=10)


def locks():
    with lock:
        pass


def runs():
    subprocess.run(["sleep", "0.02"], check=True)


def receives():
    # All that is there: a full socket would keep the provider from serving the queue.
    return here.recv(1 << 16)


def compresses():
    return zlib.compress(DATA, 6)


def generates():
    return sum(produced())


def produced():
    for i in range(2):
        time.sleep(0.003)
        yield i


def awaits():
    asyncio.run(together())


async def together():
    await asyncio.gather(waits_a_while(0.004), waits_a_while(0.006))


async def waits_a_while(seconds):
    await asyncio.sleep(seconds)


def provide():
    """Serves `takes`, `locks` and `receives`: it is no part of the truth."""
    while not over.is_set():
        with lock:
            time.sleep(0.003)
        batches.put(1)
        there.send(b"x")
        time.sleep(0.002)
    for _ in range(100):
        batches.put(1)
        there.send(b"x")


JOBS = ((sleeps, naps), (computes, recurses), (takes, locks), (runs, receives), (compresses, generates), (awaits,))


TIMED = """
def timed_{name}(record):
    begin, ran = monotonic_ns(), thread_time_ns()
    {name}()
    record[1] += thread_time_ns() - ran
    record[2] += 1
    record[0] += monotonic_ns() - begin
"""
"""The clocks are read inside: where a thread reads one, it easily loses its core, or the interpreter lock."""


def timed(function):
    name = function.__name__
    space = {name: function, "monotonic_ns": time.monotonic_ns, "thread_time_ns": time.thread_time_ns}
    exec(TIMED.format(name=name), space)
    return space[f"timed_{name}"]


def work(functions):
    jobs = [(timed(function), [0, 0, 0]) for function in functions]
    while "begin_ns" not in truth:
        time.sleep(0.001)
    while not over.is_set():
        for job, record in jobs:
            job(record)
    tid = threading.get_native_id()
    for job, (ns, cpu, count) in jobs:
        calls[job.__name__] = {"function": job.__name__, "tid": tid, "ns": ns, "cpu_ns": cpu, "calls": count}


truth = {}


def main():
    signal.alarm(LIMIT_SECONDS)
    numbers = [argument for argument in sys.argv[1:] if argument.isdigit()]
    milliseconds = int(numbers[0]) if numbers else 2000
    threads = [threading.Thread(target=work, args=(functions,)) for functions in JOBS]
    for thread in [*threads, threading.Thread(target=provide)]:
        thread.start()
    pid = os.getpid()
    tids = [pid, *(thread.native_id for thread in threads)]
    print(json.dumps({"ready": True, "pid": pid, "pids": [pid], "tids": tids}), flush=True)
    if "--wait" in sys.argv and not os.read(0, 1):
        os._exit(1)
    truth.update({"workload": "python_truth", "pid": pid, "begin_ns": time.monotonic_ns()})
    time.sleep(milliseconds / 1000)
    over.set()
    for thread in threads:
        thread.join()
    truth.update(end_ns=time.monotonic_ns(), threads=[], version=list(sys.version_info[:3]))
    truth["waits"] = [dict(record, pid=pid, blocks=record["calls"]) for record in calls.values()]
    print(json.dumps(truth), flush=True)
    while "--linger" in sys.argv and os.read(0, 1):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
