"""Waiters for the interpreter lock, and who had it: from waits that are made by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from stallscope.converters.model import Frame, Stack
from stallscope.converters.model.gil import MOST_THREADS, GilTimes
from stallscope.tracers.base import procfs
from stallscope.tracers.engines.ebpf.gil import gil_of
from stallscope.tracers.engines.ebpf.measures.protocol import GilWait, LockRows, LockSum
from stallscope.tracers.engines.rows import Row
from stallscope.tracers.kernel.records import STATES, Origin

SLEEP = STATES.index("interruptible")
STACKS = {1: ("main", "hog"), 2: ("main", "other"), 3: ("[Python function]",)}


class Stacks:
    def of(self, row: Row) -> Stack:
        names = STACKS.get(row.origin.ustack)
        if names is None:
            return (Frame("[stack lost]", "other"),)
        return tuple(Frame(name, "python", file="/opt/train.py", line=3) for name in names)


class Names:
    def process(self, pid: int) -> str:
        return f"app{pid}"

    def thread(self, pid: int, first: int) -> str:
        return f"thread{first}"

    def pid(self, number: int) -> tuple[int, int]:
        return number, 1


@pytest.fixture(autouse=True)
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs, "tgid_of", lambda tid: None)


def wait(
    stack: int = 1, holder: int = 9, *, tid: int = 8, tgid: int = 7, time: int = 50, is_open: bool = False
) -> GilWait:
    row = Row(Origin(stack, 0, 0, tid, tgid, tid, SLEEP), STATES[SLEEP], (), is_open=is_open)
    return GilWait(row, holder, LockSum(time, 2, time))


def times(*waits: GilWait) -> list[GilTimes]:
    ids = [(7, tid) for tid in (7, 8, 9)] + [(20, 20)]
    records = [SimpleNamespace(thread=SimpleNamespace(key=SimpleNamespace(tgid=g, tid=t), first=t)) for g, t in ids]
    capture = SimpleNamespace(
        locks=LockRows(gil=waits),
        threads=records,
        lives=SimpleNamespace(threads={tid: tid for _, tid in ids}),
        spaces=SimpleNamespace(processes={}),
    )
    return gil_of(cast(Any, capture), {}, cast(Any, Stacks()), cast(Any, Names()))


def test_one_process() -> None:
    (gil,) = times(wait(), wait(2, time=30), wait(1, 7, time=10), wait(tid=9, holder=8, is_open=True))
    assert (gil.process, gil.pid, gil.time, gil.waits, gil.max) == ("app7", 7, 140, 8, 50)
    assert (gil.open_count, gil.unknown) == (2, 0)
    assert [(each.thread, each.tid, each.time) for each in gil.waiters] == [("thread8", 8, 90), ("thread9", 9, 50)]
    assert [(each.tid, each.frames, each.time) for each in gil.holders] == [
        (8, ("main", "train.py:3 hog"), 50),
        (9, ("main", "train.py:3 hog"), 50),
        (9, ("main", "train.py:3 other"), 30),
        (7, ("main", "train.py:3 hog"), 10),
    ]


def test_functions_that_are_not_known() -> None:
    (gil,) = times(wait(0), wait(4))
    assert [(each.tid, each.frames, each.time) for each in gil.holders] == [(9, (), 100)]


def test_a_holder_that_is_no_thread_of_the_process() -> None:
    (gil,) = times(wait(holder=20), wait(holder=0, time=1))
    assert (gil.holders, gil.unknown, gil.time) == ([], 51, 51)


def test_several_processes() -> None:
    assert [gil.pid for gil in times(wait(), wait(tgid=20, tid=20, time=70))] == [20, 7]


def test_no_more_than_some() -> None:
    (gil,) = times(*(wait(tid=tid) for tid in range(100, 102 + MOST_THREADS)))
    assert (len(gil.waiters), gil.more_waiters, gil.more_holders) == (MOST_THREADS, 2, 0)
