"""One job in several implementations, to be compared: it scales a vector, adds to it and sums it up.

implementations.py [--wait] [--linger] fused|unfused|copied|boundary [ROUNDS=20]

Truth: all of them make the same result, and spend nearly all of their time on a core in the named function.
  fused:     ``fused_step``: one pass over the vector, in C (zlib.crc32 stands for the arithmetic).
  unfused:   ``unfused_step``: three passes over it, each in a call of its own: about three times as long.
  copied:    ``copied_step``: memmove of the vector to another place and back around the pass, as a kernel that wants
             another layout.
  boundary:  ``boundary_step``: the pass in pieces of 64 bytes, each by its own call from Python to C.
``ns`` of the record is their time by the thread's own clock: what one takes longer than ``fused`` is what a comparison
has to find, and where.
"""

from __future__ import annotations

import ctypes
import sys
import time
import zlib

import python_workload

SIZE = 8 << 20
PIECE = 64
COPIES = 8
vector = bytes(range(256)) * (SIZE // 256)
other = ctypes.create_string_buffer(SIZE)
back = ctypes.create_string_buffer(SIZE)


def fused_step():
    return zlib.crc32(vector)


def unfused_step():
    zlib.crc32(vector)
    zlib.crc32(vector)
    return zlib.crc32(vector)


def copied_step():
    for _ in range(COPIES // 2):
        ctypes.memmove(other, vector, SIZE)
        ctypes.memmove(back, other, SIZE)
    return zlib.crc32(back.raw)


def boundary_step():
    total = 0
    for at in range(0, SIZE, PIECE):
        total = zlib.crc32(vector[at : at + PIECE], total)
    return total


WAYS = {"fused": fused_step, "unfused": unfused_step, "copied": copied_step, "boundary": boundary_step}


def main():
    rounds = python_workload.begin(20)
    name, step = next((name, WAYS[name]) for name in sys.argv[1:] if name in WAYS)
    record = python_workload.wait_record(f"{name}_step")
    pid = python_workload.get_ready()
    truth = {"workload": "implementations", "pid": pid, "begin_ns": time.monotonic_ns()}
    results = set()
    for _ in range(rounds):
        begin = time.thread_time_ns()
        results.add(step())
        record["calls"] += 1
        record["ns"] += time.thread_time_ns() - begin
    truth.update(end_ns=time.monotonic_ns(), results=sorted(results))
    python_workload.tell(truth, [record])


if __name__ == "__main__":
    main()
