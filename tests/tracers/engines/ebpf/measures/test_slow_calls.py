"""Calls that do not count because they are short. With real calls: tests/live/test_func.py."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from stallscope.tracers.engines.ebpf.measures.call_parts import KEY
from stallscope.tracers.engines.ebpf.measures.open_calls import Longest, Open
from stallscope.tracers.engines.ebpf.measures.slow_calls import SlowCalls
from stallscope.tracers.kernel.records import RUNNING

MS = 1_000_000
BLOCKED = 1 << 62
NOWHERE = Longest()


def ended(end: int) -> Any:
    record = SimpleNamespace(thread=SimpleNamespace(key=SimpleNamespace(tid=8, tgid=7)), end=end, exited=False)
    return SimpleNamespace(threads=[record])


def call(depth: int, began: int, blocked: int, longest: Longest = NOWHERE) -> Open:
    return Open(8, depth, began, 5 + depth, blocked, 10, 0, 0, depth, 1, longest=longest)


def counted(*calls: tuple[int, int, int]) -> SlowCalls:
    """Counts with fast calls of (function, number, time)."""
    slow = SlowCalls(5 * MS)
    keys = b"".join(KEY.pack(8, 7, 1, function, 0, 0) for function, *_ in calls)
    values = b"".join(number.to_bytes(8, "little") + time.to_bytes(8, "little") for _, number, time in calls)
    table: Any = SimpleNamespace(drain=lambda _: (keys, values))
    slow._table = table
    slow.drain(0)
    slow.take()
    return slow


def test_all_calls_count_without_a_limit() -> None:
    slow, calls = SlowCalls(0), [call(0, 0, 0), call(1, 9, 0)]
    assert slow.knobs() == {}
    assert slow.going_on(calls, ended(10)) == calls
    assert list(slow.waits(calls)) == []
    assert list(slow.remarks([])) == []


def test_what_is_said_of_the_others() -> None:
    slow = counted((0, 30, 9 * MS), (1, 2, MS), (0, 1, MS), (2, 1, 1), (3, 1, 1))
    assert slow.knobs() == {"call_over": 5 * MS}
    slow.read(3)
    assert list(slow.remarks(["sell", "b\x1buy", "look", "ask"])) == [
        "only calls of more than 5.00 ms count: 35 other calls took 11.0 ms in all: "
        "31 of sell, 2 of b\\x1buy, 1 of look, 1 more",
        "and 3 more calls that did not count had no room in a table",
    ]
    slow.next()
    assert list(slow.remarks([])) == ["only calls of more than 5.00 ms count"]


def test_a_short_call_that_goes_on_is_part_of_the_one_around_it() -> None:
    outer, inner = (
        call(0, 0, 3 * MS, Longest(BLOCKED | MS, 1, 2, 3)),
        call(1, 8 * MS, MS, Longest(BLOCKED | 9, 4, 5, 6)),
    )
    slow = SlowCalls(5 * MS)
    (kept,) = slow.going_on([inner, outer], ended(10 * MS))
    assert (kept.depth, kept.blocked, kept.runnable, kept.longest) == (0, 4 * MS, 20, outer.longest)
    assert slow.going_on([inner], ended(10 * MS)) == []
    assert slow.going_on([outer, inner], ended(20 * MS)) == [outer, inner]


def test_waits_are_where_the_longest_was() -> None:
    one = call(0, 0, 3 * MS, Longest(BLOCKED | MS, 11, 12, RUNNING - 1))._replace(slow_blocked=MS, slow_runnable=4)
    ((place, blocked, runnable),) = SlowCalls(5 * MS).waits([one, call(1, 0, 0)])
    assert (place.ustack, place.kstack, place.tid, place.state) == (11, 12, 8, RUNNING - 1)
    assert (blocked, runnable) == (2 * MS, 6)
