"""Ioctls and copies in calls, from the tables of the probes. With real calls: tests/live/test_cuda_ioctls.py."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from stallscope.tracers.engines.ebpf.measures import call_sums
from stallscope.tracers.engines.ebpf.measures.call_parts import COPY, IOCTL, KEY, CallParts
from stallscope.tracers.engines.ebpf.measures.open_calls import Inside, Part
from stallscope.tracers.engines.ebpf.measures.probed import Probe
from stallscope.tracers.engines.ebpf.measures.totals import Moved
from stallscope.tracers.kernel.records import RUNNING, Origin

FUNCTIONS = [Probe("cudaMemcpyAsync", "/x/libcudart.so.12", True), Probe("cuInit", "/x/libcuda.so.1", True)]


def table(items: list[tuple[bytes, bytes]]) -> Any:
    parts = b"".join(key for key, _ in items), b"".join(value for _, value in items)
    return SimpleNamespace(drain=lambda _slot: parts)


def described(number: int) -> tuple[str, str]:
    return f"COMMAND_{number}", "/dev/x"


def read(ioctls: list[tuple[bytes, bytes]], copies: list[tuple[bytes, bytes]]) -> CallParts:
    parts = CallParts()
    parts._tables = {"ioctls": table(ioctls), "copies": table(copies)}
    parts.drain(0)
    return parts


def test_ioctls_are_added_up_by_thread() -> None:
    items = [
        (KEY.pack(8, 7, 1, 1, 5, 0), IOCTL.pack(2, 100, 60, 10)),
        (KEY.pack(9, 7, 2, 1, 5, 0), IOCTL.pack(1, 50, 50, 0)),
        (KEY.pack(8, 7, 1, 1, 6, 0), IOCTL.pack(1, 1, 0, 0)),
        (KEY.pack(3, 3, 3, 1, 5, 0), IOCTL.pack(1, 7, 0, 0)),
    ]
    going_on = Part(7, 1, 900, Origin(0, 0, 0, 8, 7, 1, RUNNING), 0, 0, ioctl=Inside(1, 2, 5), ioctl_time=400)
    parts = read(items, [])
    parts._tables["ioctls"] = table(items[:1])
    parts.drain(0)
    found = parts.ioctls(FUNCTIONS, described, [going_on, going_on._replace(ioctl=None)])
    assert all(made.pid == origin.tgid for origin, made in found)
    by = {(origin.tid, origin.life, made.command, made.open_count): made for origin, made in found}
    one, two = by[8, 1, "COMMAND_5", 0], by[9, 2, "COMMAND_5", 0]
    assert (one.name, one.library, one.frame) == ("cuInit", "libcuda.so.1", "COMMAND_5 /dev/x")
    assert (one.count, one.total, one.blocked, one.runnable) == (4, 200, 120, 20)
    assert (two.count, two.total) == (1, 50)
    assert by[8, 1, "COMMAND_6", 0].count == 1
    assert by[3, 3, "COMMAND_5", 0].total == 7
    open_one = by[8, 1, "COMMAND_5", 1]
    assert (open_one.count, open_one.open_time) == (0, 400)
    assert len(found) == 5


def test_copies_by_direction() -> None:
    items = [
        (KEY.pack(8, 7, 1, 0, 1, 0), COPY.pack(2, 4096, 0, 100, 60, 10)),
        (KEY.pack(9, 7, 1, 0, 1, 0), COPY.pack(1, 0, 1, 50, 0, 0)),
        (KEY.pack(8, 7, 1, 0, 5, 0), COPY.pack(1, 8, 0, 5, 0, 0)),
    ]
    parts = read([], items)
    by = {(origin.tid, copies.direction): copies for origin, copies in parts.copies(FUNCTIONS)}
    one, two = by[8, "host to device"], by[8, "unknown"]
    assert (one.name, one.direction, one.is_async) == ("cudaMemcpyAsync", "host to device", True)
    assert (one.count, one.bytes, one.unknown, one.total, one.blocked, one.runnable) == (2, 4096, 0, 100, 60, 10)
    assert (two.bytes, by[9, "host to device"].unknown) == (8, 1)
    parts.drain(0)
    parts.clear()
    assert parts.copies(FUNCTIONS) == parts.ioctls(FUNCTIONS, described, []) == []


def test_what_ended_threads_made_is_added_up() -> None:
    ioctls = [(KEY.pack(tid, 7, tid, 1, 5, 0), IOCTL.pack(1, 10, 0, 0)) for tid in (8, 9)]
    copies = [(KEY.pack(tid, 7, tid, 0, 1, 0), COPY.pack(1, 64, 0, 5, 0, 0)) for tid in (8, 9)]
    parts = read(ioctls, copies)
    parts.move(Moved.of({8: (1 << 62, 99, False), 9: (1 << 62, 99, False)}))
    ((origin, made),) = parts.ioctls(FUNCTIONS, described, [])
    assert (origin.tid, origin.tgid, origin.life, made.count, made.total) == (0, 1 << 30, 99, 2, 20)
    ((_, copied),) = parts.copies(FUNCTIONS)
    assert (copied.count, copied.bytes) == (2, 128)


def test_kinds_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rare ones of a thread are added up; the sums stay."""
    monkeypatch.setattr(call_sums, "_MOST", 4)
    keys = [KEY.pack(8, 7, 1, i % 2, i % 6, 0) for i in range(20)]
    parts = read([(key, IOCTL.pack(1, 10, 0, 0)) for key in keys], [(key, COPY.pack(1, 8, 0, 5, 0, 0)) for key in keys])
    ioctls = [made for _, made in parts.ioctls(FUNCTIONS, lambda number: (f"{number}", "/dev/x"), [])]
    copies = [made for _, made in parts.copies(FUNCTIONS)]
    assert len(ioctls) <= 5 and len(copies) <= 5
    assert sum(made.count for made in ioctls) == sum(made.count for made in copies) == 20
    (rest,) = [made for made in ioctls if made.name == "[other functions]"]
    assert rest.command == "0"  # no target has this number
    (rest_copied,) = [made for made in copies if made.name == "[other functions]"]
    assert (rest_copied.direction, rest_copied.bandwidth) == ("unknown", None)
