"""Recordings of perf, made by hand, and what is passed on of them."""

from __future__ import annotations

import struct

from stallscope.tracers.engines.perf.passing import Passing

HEADER = b"PERFILE2" + struct.pack("=Q", 16)
SAMPLE, COMM, MMAP2, TRACING_DATA = 9, 3, 10, 66
EXEC = 1 << 13
IDS = bytes(range(1, 33))
"""Bytes that follow each record: thread, time, id, core."""


def record(kind: int, body: bytes, misc: int = 2) -> bytes:
    return struct.pack("=IHH", kind, misc, 8 + len(body)) + body


def comm(name: bytes, misc: int = EXEC | 2) -> bytes:
    padded = name + b"\0" * (8 - len(name) % 8)
    return record(COMM, struct.pack("=II", 71, 72) + padded + IDS, misc)


def passed(data: bytes, cuts: list[int] | None = None) -> bytes:
    made, out = Passing(), b""
    places = [0, *sorted(cuts or []), len(data)]
    for begin, end in zip(places, places[1:], strict=False):
        if begin < end:
            out += b"".join(made.feed(data[begin:end]))
    return out + b"".join(made.feed(b""))


IP, TID, TIME, ID, CPU, STREAM_ID, IDENTIFIER = 1, 2, 4, 1 << 6, 1 << 7, 1 << 9, 1 << 16
WHO = struct.pack("=iiQ", -1, 72, 1 << 60)


def attr(sample_type: int, *ids: int) -> bytes:
    return record(64, struct.pack("=IIQQQ32x", 1, 64, 0, 0, sample_type) + struct.pack(f"={len(ids)}Q", *ids))


def noticed(*records: bytes) -> list[tuple[int, bytes]]:
    """Kind, and pid, tid and time as they are in the record."""
    made = Passing()
    for _ in made.feed(HEADER + b"".join(records)):
        pass
    return [(made.notices[at], bytes(made.notices[at + 1 : at + 17])) for at in range(0, len(made.notices), 17)]
