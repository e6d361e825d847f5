"""Ioctls and copies in calls, from the tables of the probes. With real calls: tests/live/test_cuda_joined.py."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from stallscope.tracers.kernel.records import RUNNING, Origin
from stallscope.tracers.measures.call_parts import COPY, IOCTL, KEY, CallParts
from stallscope.tracers.measures.open_calls import Inside, Part
from stallscope.tracers.measures.probed import Probe

FUNCTIONS = [Probe("cudaMemcpyAsync", "/x/libcudart.so.12", True), Probe("cuInit", "/x/libcuda.so.1", True)]


def table(items: list[tuple[bytes, bytes]]) -> Any:
    parts = b"".join(key for key, _ in items), b"".join(value for _, value in items)
    return SimpleNamespace(drain=lambda _slot: parts)


def described(number: int) -> tuple[str, str]:
    return f"COMMAND_{number}", "/dev/x"


def read(ioctls: list[tuple[bytes, bytes]], copies: list[tuple[bytes, bytes]]) -> CallParts:
    parts = CallParts()
    parts._tables = {"ioctls": table(ioctls), "copies": table(copies)}
    parts.read(0)
    return parts


def test_ioctls_of_threads_are_added_up_by_process() -> None:
    items = [
        (KEY.pack(8, 7, 1, 1, 5, 0), IOCTL.pack(2, 100, 60, 10)),
        (KEY.pack(9, 7, 2, 1, 5, 0), IOCTL.pack(1, 50, 50, 0)),
        (KEY.pack(8, 7, 1, 1, 6, 0), IOCTL.pack(1, 1, 0, 0)),
        (KEY.pack(3, 3, 3, 1, 5, 0), IOCTL.pack(1, 7, 0, 0)),
    ]
    going_on = Part(7, 1, 900, Origin(0, 0, 0, 8, 7, 1, RUNNING), 0, 0, ioctl=Inside(1, 2, 5), ioctl_time=400)
    one, two, three = read(items, []).ioctls(FUNCTIONS, described, [going_on, going_on._replace(ioctl=None)])
    assert (one.name, one.library, one.pid, one.frame) == ("cuInit", "libcuda.so.1", 7, "COMMAND_5 /dev/x")
    assert (one.count, one.total, one.blocked, one.runnable, one.open_count, one.open_time) == (3, 150, 110, 10, 1, 400)
    assert (two.command, two.count) == ("COMMAND_6", 1)
    assert (three.pid, three.total) == (3, 7)


def test_copies_by_direction() -> None:
    items = [
        (KEY.pack(8, 7, 1, 0, 1, 0), COPY.pack(2, 4096, 0, 100, 60, 10)),
        (KEY.pack(9, 7, 1, 0, 1, 0), COPY.pack(1, 0, 1, 50, 0, 0)),
        (KEY.pack(8, 7, 1, 0, 5, 0), COPY.pack(1, 8, 0, 5, 0, 0)),
    ]
    parts = read([], items)
    one, two = parts.copies(FUNCTIONS)
    assert (one.name, one.direction, one.is_async) == ("cudaMemcpyAsync", "host to device", True)
    assert (one.count, one.bytes, one.unknown, one.total, one.blocked, one.runnable) == (3, 4096, 1, 150, 60, 10)
    assert (two.direction, two.bytes) == ("unknown", 8)
    parts.forget()
    assert parts.copies(FUNCTIONS) == parts.ioctls(FUNCTIONS, described, []) == []
