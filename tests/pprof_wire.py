"""Profiles for the tests of pprof, and its bytes by hand: by the numbers of profile.proto, without our schema."""

from __future__ import annotations

import io
from collections import defaultdict
from typing import Any

from stallscope.converters import pprof
from stallscope.converters.model import Frame, Module, Profile, Sample, ThreadTimes, ValueType

LIBC = Module("/usr/lib/libc.so.6", "aa" * 20, 0x1D5000)
DEMO = Module("/opt/demo", "bb" * 20, 0x4000)
HOSTILE = "<script>alert(1)</script>;x \x1b[2J\u202e\"'&\n\udcff\\udc80\\u005c"


def profile() -> Profile:
    worker = (
        Frame("start_thread", "native", LIBC, 0x89000),
        Frame("topk<int>(int)", "native", DEMO, 0x1234, "topk.cpp", 42),
        Frame("ioctl", "native", LIBC, 0x10E000),
        Frame("entry_SYSCALL_64", "kernel", None, 0xFFFFFFFF81000010),
        Frame("schedule", "kernel", None, 0xFFFFFFFF81000020),
    )
    main = (Frame("main", "python", None, 0, "train.py", 7), Frame(HOSTILE, "jit", None, 0x55))
    labels = (("host", "n1"), ("pid", 0), ("process", HOSTILE), ("state", ""), ("tid", 101))
    return Profile(
        [
            ValueType("min", "nanoseconds", "min"),
            ValueType("off-cpu", "nanoseconds"),
            ValueType("count", "count"),
            ValueType("max", "nanoseconds", "max"),
        ],
        [Sample(worker, (5, 3_000_000_000, 3, 2_000_000_000), labels), Sample(main, (0, 7, 1, 7), (("pid", -1),))],
        title="off-CPU time of " + HOSTILE,
        host="n1",
        start_ns=1_790_000_000_000_000_000,
        duration_ns=10_000_000_000,
        threads=[ThreadTimes(100, HOSTILE, 101, "w", 10, 1, 2, {"interruptible": 7}, 5, exited=True)],
        lost={"lost events": 0, "stacks cut short": 3},
        comments=["hello", "stallscope:nonsense", "lost: lost events 0, stacks cut short 3", ""],
    )


def saved(content: Profile) -> bytes:
    file = io.BytesIO()
    pprof.save(content, file)
    return file.getvalue()


def loaded(data: bytes, **options: int) -> Profile:
    return pprof.load(io.BytesIO(data), **options)


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if byte < 0x80:
            return value, at


def fields(data: bytes) -> dict[int, list[Any]]:
    """Field number → values: ints (wire type 0) and bytes (wire type 2)."""
    found: dict[int, list[Any]] = defaultdict(list)
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        assert tag & 7 in (0, 2)
        if tag & 7 == 2:
            found[tag >> 3].append(data[at : at + value])
            at += value
        else:
            found[tag >> 3].append(value)
    return found


def packed(data: bytes) -> list[int]:
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def text(number: int, content: bytes | str) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def number(field: int, value: int) -> bytes:
    out = bytearray([field << 3])
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def with_comment(meta: str) -> bytes:
    """A profile with data of ours in a comment, as version 0.1 wrote them."""
    comment = b"stallscope:" + meta.encode()
    head = text(1, number(1, 1) + number(2, 2)) + number(13, 3)
    strings = (
        text(6, "") + text(6, "cpu") + text(6, "nanoseconds") + number(6, len(comment)).replace(b"\x30", b"\x32", 1)
    )
    return head + strings + comment
