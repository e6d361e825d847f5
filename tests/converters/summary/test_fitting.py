"""Order in which parts of a summary are left out."""

from __future__ import annotations

from itertools import pairwise

import pytest
from stallscope.converters.model import Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.summary.figures import Summary
from stallscope.converters.summary.fitting import (
    LINES,
    Parts,
    for_few,
    for_many,
    growth,
    in_any,
    in_height,
    left_out,
    shows_running,
)
from stallscope.converters.summary.summarize import summarize
from summary_profiles import MS, POOL, SPIN


def rows(parts: Parts) -> int:
    return parts.top + parts.blocking + parts.locks + parts.path


def test_many_processes_get_less_and_less() -> None:
    steps = for_many()
    assert steps[0] == Parts()
    assert all(rows(less) <= rows(more) for more, less in pairwise(steps))
    assert all(parts.shortened for parts in steps[1:])
    assert rows(steps[-1]) == 3, "a wait, a lock and a part of the path"
    assert not (steps[-1].processes or steps[-1].notes or steps[-1].running or steps[-1].alike or steps[-1].calls)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("blocking", [False, True])
def test_few_keep_more_waits_as_long_as_that_is_possible(several: bool, blocking: bool) -> None:
    steps = for_few(several=several, blocking=blocking, calls=False)
    assert steps[0] == Parts(8)
    assert steps[-1].top == 1
    assert not steps[-1].running
    assert any(parts.blocking == 2 for parts in steps) == blocking
    assert any(parts.notes and not parts.processes for parts in steps) == several


def test_calls_keep_their_table_of_processes() -> None:
    assert all(parts.processes for parts in for_few(several=True, blocking=False, calls=True))


def test_what_room_is_left_is_used_by_what_tells_most() -> None:
    parts = for_few(several=False, blocking=True, calls=False)[-1]._replace(top=0, work=0)
    grown = [step(parts) for step in growth()]
    assert (grown[0].running, grown[0].work) == (True, 1)
    assert grown[1].top == 1
    assert grown[3].notes
    assert all(rows(more) + more.work >= rows(parts) + parts.work for more in grown)
    for step in growth():
        while (more := step(parts)) != parts:
            parts = more
    assert (parts.top, parts.work, parts.blocking, parts.locks) == (8, 3, 2, 8)
    assert parts.notes
    assert parts.processes
    assert parts.alike


@pytest.mark.parametrize("steps", [for_many(), for_few(several=True, blocking=True, calls=False)])
def test_a_row_of_each_table_comes_before_none_of_what_runs(steps: list[Parts]) -> None:
    for tried in (in_any(steps, LINES), in_height(24, steps)):
        parts = [each for each, _ in tried]
        first = next(i for i, each in enumerate(parts) if not each.running)
        assert (parts[first - 1].top, parts[first - 1].work) == (0, 1)


def test_what_runs_has_a_table_if_something_was_sampled() -> None:
    summary = running_beside_waits(samples=5)
    assert shows_running(summary, Parts(3))
    assert not shows_running(summary, Parts(3, work=0))
    assert not shows_running(summary, Parts(3, running=False))
    assert not shows_running(summary, Parts(tables=False))
    none = running_beside_waits(samples=0)
    assert not shows_running(none, Parts(3))
    assert shows_running(none, Parts())


def test_tables_that_are_left_out_are_named() -> None:
    summary = running_beside_waits(samples=5)
    assert left_out(summary, Parts(3), with_processes=False) == []
    assert left_out(summary, Parts(3, work=0), with_processes=False) == ["what runs"]
    assert left_out(summary, Parts(tables=False), with_processes=False) == ["what runs", "waits"]
    assert left_out(running_beside_waits(samples=0), Parts(3), with_processes=False) == []


def running_beside_waits(samples: int) -> Summary:
    profile = Profile([ValueType(name, "nanoseconds") for name in ("wall", "count", "min", "max", "samples")])
    for stack, state, time, number in ((SPIN, "running", MS, samples), (POOL, "interruptible", 99 * MS, 0)):
        labels = ("pid", 7), ("process", "p"), ("state", state), ("thread", "p"), ("tid", 7)
        profile.samples.append(Sample(stack, (time, 1, time, time, number), labels))
    profile.threads.append(ThreadTimes(7, "p", 7, "p", 100 * MS, MS, 0, {"interruptible": 99 * MS}))
    return summarize(profile)
