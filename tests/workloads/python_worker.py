"""A Python program whose main thread waits for the results of a worker thread.

python_worker.py [--wait] [--linger] [ROUNDS=50]

Truth: main asks for a result, and waits for it in await_result(), which the worker makes in compress_block() (zlib,
without the interpreter lock), for more than half of the time; then main uses it in use_result(). ``await_result`` has
main's waits by its own clock, ``compress_block`` the worker's calls.
"""

from __future__ import annotations

import queue
import threading
import time
import zlib

import python_workload

BLOCK = bytes(range(256)) * 4096
"""Work of zlib for some milliseconds."""
USED_NS = 500_000

asked: queue.SimpleQueue[bool] = queue.SimpleQueue()
results: queue.SimpleQueue[bytes] = queue.SimpleQueue()


def compress_block(record):
    begin = time.monotonic_ns()
    made = zlib.compress(BLOCK, 6)
    record["calls"] += 1
    record["ns"] += time.monotonic_ns() - begin
    return made


def worker(records):
    record = python_workload.wait_record("compress_block")
    records.append(record)
    while asked.get():
        results.put(compress_block(record))


def await_result(record):
    begin = time.monotonic_ns()
    made = results.get()
    record["calls"] += 1
    record["ns"] += time.monotonic_ns() - begin
    return made


def use_result():
    until = time.thread_time_ns() + USED_NS
    while time.thread_time_ns() < until:
        pass


def main():
    rounds = python_workload.begin(50)
    records = [python_workload.wait_record("await_result")]
    thread = threading.Thread(target=worker, args=(records,))
    thread.start()
    pid = python_workload.get_ready([thread.native_id])
    truth = {"workload": "python_worker", "pid": pid, "begin_ns": time.monotonic_ns()}
    for _ in range(rounds):
        asked.put(True)
        await_result(records[0])
        use_result()
    truth["end_ns"] = time.monotonic_ns()
    asked.put(False)
    thread.join()
    python_workload.tell(truth, records)


if __name__ == "__main__":
    main()
