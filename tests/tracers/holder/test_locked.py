"""Address spaces that stay locked. With a real one: tests/hostile/test_locks.py."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from stallscope.tracers.holder import locked
from stallscope.tracers.holder.locked import Lock, parse, stay_locked

READER, WRITER, WAITS = 0x100, 1, 2


def record(mm: int, tgid: int, state: int, writes: int = 0) -> bytes:
    return struct.pack("=QQII", mm, state, tgid, writes)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[], float]:
    """Time passes only while it sleeps."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(locked.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(locked.time, "sleep", sleep)
    return lambda: now[0]


def looks(*each: bytes) -> Callable[[], bytes]:
    """The last one stays."""
    left = list(each)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def test_the_layout_is_that_of_the_probes() -> None:
    assert parse(record(1 << 63, 7, READER | WAITS, 9)) == {1 << 63: Lock(7, READER | WAITS, 9)}


def test_none_is_known_at_once(clock: Callable[[], float]) -> None:
    assert stay_locked(looks(b""), 1) == []
    assert clock() == 0


def test_what_stays_locked(clock: Callable[[], float]) -> None:
    held = record(1, 30, READER) + record(2, 20, READER | WAITS) + record(3, 20, WRITER)
    assert stay_locked(looks(held), 0.5) == [20, 30]
    assert 0.5 <= clock() < 0.6


def test_one_look_is_enough_without_time() -> None:
    assert stay_locked(looks(record(1, 30, READER), b""), 0) == [30]


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(b"", id="free"),
        pytest.param(record(2, 30, READER), id="another address space"),
        pytest.param(record(1, 30, READER, 6), id="a writer had it"),
        pytest.param(record(1, 30, WRITER, 5), id="a writer has it"),
    ],
)
def test_what_is_locked_again_and_again_does_not_count(later: bytes, clock: Callable[[], float]) -> None:
    first = record(1, 30, READER, 5)
    assert stay_locked(looks(first, first, later, first), 1) == []
    assert clock() < 0.1


def test_more_readers_do_not_help_a_writer() -> None:
    first, more = record(1, 30, READER, 5), record(1, 30, 3 * READER, 5)
    assert stay_locked(looks(first, more, first, more), 0.1) == [30]
