"""Requests and waits for which there is no room, or no time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from lock_tables import ME, OWNER, SOON, WAITER
from stallscope.tracers.base import file_locks, lock_table
from stallscope.tracers.base.file_locks import LOST_LOOKS, LOST_REQUESTS, FileLocks
from stallscope.tracers.base.lock_table import MOST, Lock, Refused


def of_range(first: int, number: int = 1, *, pid: int = ME, tid: int = ME, inode: int = 99) -> Refused:
    """A recent request for a lock of a byte."""
    wish = Lock("fcntl", "write", pid, 8 << 20 | 1, inode, first, first)
    return Refused(wish, number, time.monotonic_ns() + SOON, tid)


@pytest.mark.parametrize(
    ("limit", "requests", "lost"),
    [
        ("_MOST", [of_range(1, 4, inode=1), of_range(1, 5, inode=2)], {}),
        ("_MOST", [of_range(1, 4, inode=each) for each in (1, 2, 3)], {LOST_REQUESTS: 4, LOST_LOOKS: 1}),
        ("_MOST", [of_range(1, 4), of_range(2, 4), of_range(3, 4)], {LOST_LOOKS: 1}),
        ("_THREADS", [of_range(1, 4, tid=1), of_range(1, 5, tid=2), of_range(1, 6, tid=1)], {}),
        ("_THREADS", [of_range(1, 4, tid=each) for each in (1, 2, 3, 4, 3)], {LOST_REQUESTS: 12}),
    ],
)
def test_more_requests_than_there_is_room_for_are_lost(
    table: Path, monkeypatch: pytest.MonkeyPatch, limit: str, requests: list[Refused], lost: dict[str, int]
) -> None:
    """Room for two."""
    monkeypatch.setattr(file_locks, limit, 2)
    recent = [each._replace(at=time.monotonic_ns() + SOON) for each in requests]  # not when the tests were collected
    look = FileLocks({ME: 0}, refused=lambda: recent)
    look.finish()
    assert look.losses() == lost
    look.next()
    assert look.losses() == {}


def test_the_latest_requests_are_kept(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_locks, "_MOST", 2)
    requests = [of_range(1, inode=each)._replace(at=time.monotonic_ns() + SOON * each) for each in (3, 1, 2)]
    look = FileLocks({ME: 0}, refused=lambda: requests)
    look.finish()
    assert {each.inode for each in look.found({ME: 0}, 0, time.monotonic_ns())} == {2, 3}


@pytest.mark.parametrize(
    ("waiters", "traced", "lost"), [([ME, 1], [ME, 1], 0), ([1, 2, ME], [ME], 1), ([ME, 1, 2], [ME], 0)]
)
def test_more_waits_than_there_is_room_for_are_lost(
    table: Path, monkeypatch: pytest.MonkeyPatch, waiters: list[int], traced: list[int], lost: int
) -> None:
    """Room for two: others that wait are kept, too, but not missed."""
    monkeypatch.setattr(file_locks, "_MOST", 2)
    look = FileLocks(dict.fromkeys(traced, 0))
    for looks in (1, 2):
        table.write_bytes(OWNER % 3 + b"".join(WAITER % pid for pid in waiters))
        look.finish()
        assert look.losses() == ({LOST_LOOKS: looks * lost} if lost else {})


def test_waits_that_looks_leave_out_are_lost(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits: more than are taken from a table, and more than are compared with locks."""
    table.write_bytes(OWNER % 1 + (MOST + 3) * (WAITER % ME))
    look = FileLocks({ME: 0})
    look.finish()
    assert look.losses() == {LOST_LOOKS: 3}
    table.write_bytes(OWNER % 1 + MOST * (WAITER % ME))
    look.next()
    look.finish()
    assert look.losses() == {}
    monkeypatch.setattr(lock_table, "_COMPARISONS", 0)
    table.write_bytes(OWNER % 1 + WAITER % ME)
    look.finish()
    assert look.losses() == {LOST_LOOKS: 1}


def test_waits_for_open_files_for_which_there_is_no_time_are_lost(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_locks, "_SLICE", 0)
    asked = of_range(1)
    look = FileLocks({ME: 0}, refused=lambda: [asked, asked._replace(wish=asked.wish._replace(kind="OFD"))])
    look.finish()
    assert look.losses() == {LOST_LOOKS: 1}
