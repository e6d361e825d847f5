"""The path through schedules that are made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Profile, ValueType
from stallscope.converters.model import scheduling as events
from stallscope.converters.model.critical import NOT_TRACED
from stallscope.converters.model.scheduling import INTERRUPT, NO_STACK, Scheduling
from stallscope.converters.transforms.critical_path import critical_path, path_profile, thread_of

Rows = Sequence[tuple[Any, ...]]
S, D, R = 0x01, 0x02, 0x100
MAIN, WORKER, HOLDER, STRANGER = 10, 11, 12, 99


def schedule(switches: Rows, wakeups: Rows = (), **more: Any) -> Scheduling:
    """``switches``: time, core, state of the one that leaves, it, the one that comes. ``wakeups``: time, thread, waker,
    flags."""
    threads = more.pop("threads", [(tid, MAIN, 0, i, 0) for i, tid in enumerate((MAIN, WORKER, HOLDER))])
    return Scheduling(
        more.pop("end", 100),
        switches=np.array([(*switch, 120) for switch in switches], events.SWITCH),
        wakeups=np.array([(t, 0, 0, tid, waker, 120, flags) for t, tid, waker, flags in wakeups], events.WAKE_UP),
        threads=np.array(threads, events.THREAD),
        names=["main", "worker", "holder"],
        **more,
    )


def path(scheduling: Scheduling, tid: int = MAIN) -> list[tuple[int, int, int, str]]:
    found = critical_path(scheduling, thread_of(scheduling, tid))
    times = [(segment.begin, segment.end) for segment in found.segments]
    assert all(before[1] == after[0] for before, after in zip(times, times[1:], strict=False))
    assert sum(segment.time for segment in found.segments) == found.wall
    return [(segment.begin, segment.end, segment.tid, segment.state) for segment in found.segments]


def test_thread_that_only_runs_and_waits_for_a_core() -> None:
    found = path(schedule([(0, 0, R, 0, MAIN), (30, 0, R, MAIN, 0), (40, 0, R, 0, MAIN)]))
    assert found == [(0, 30, MAIN, "running"), (30, 40, MAIN, "runnable-preempted"), (40, 100, MAIN, "running")]


def test_wait_for_a_thread_is_what_that_thread_does() -> None:
    switches = [(0, 0, R, 0, MAIN), (0, 1, R, 0, WORKER), (20, 0, S, MAIN, 0), (75, 0, R, 0, MAIN)]
    found = path(schedule(switches, [(70, MAIN, WORKER, 0)]))
    assert found == [
        (0, 20, MAIN, "running"),
        (20, 70, WORKER, "running"),
        (70, 75, MAIN, "runnable-woken"),
        (75, 100, MAIN, "running"),
    ]


def through_two() -> Scheduling:
    """Main waits from 10 for the worker, which waits from 20 for the holder, until 60; it works until 80."""
    return schedule(
        [(0, 0, R, 0, MAIN), (0, 1, R, 0, WORKER), (0, 2, R, 0, HOLDER), (10, 0, S, MAIN, 0), (20, 1, S, WORKER, 0),
         (61, 1, R, 0, WORKER), (81, 0, R, 0, MAIN)],
        [(60, WORKER, HOLDER, 0), (80, MAIN, WORKER, 0)],
    )  # fmt: skip


def test_path_goes_through_a_worker_to_the_holder_of_a_lock() -> None:
    scheduling = through_two()
    assert path(scheduling) == [
        (0, 10, MAIN, "running"),
        (10, 20, WORKER, "running"),
        (20, 60, HOLDER, "running"),
        (60, 61, WORKER, "runnable-woken"),
        (61, 80, WORKER, "running"),
        (80, 81, MAIN, "runnable-woken"),
        (81, 100, MAIN, "running"),
    ]
    segments = critical_path(scheduling, 0).segments
    assert [segment.behind for segment in segments] == [(), (0,), (0, 1), (0,), (0,), (), ()]


@pytest.mark.parametrize("waker", [0, WORKER])
def test_timer_and_interrupt_are_waits_of_the_thread_itself(waker: int) -> None:
    stack = (Frame("nap"),)
    blocked = np.array([(20, 70, 75, MAIN, 0, S)], events.BLOCKED)
    switches = [(0, 0, R, 0, MAIN), (0, 1, R, 0, WORKER), (20, 0, S, MAIN, 0), (75, 0, R, 0, MAIN)]
    scheduling = schedule(switches, [(70, MAIN, waker, INTERRUPT)], blocked=blocked, stacks=[stack])
    assert path(scheduling)[1:2] == [(20, 70, MAIN, "interruptible")]
    assert critical_path(scheduling, 0).segments[1].stack == 0


def test_waker_that_is_not_traced_is_named_by_its_id() -> None:
    switches = [(0, 0, R, 0, MAIN), (20, 0, S, MAIN, 0), (75, 0, R, 0, MAIN)]
    found = path(schedule(switches, [(70, MAIN, STRANGER, 0)]))
    assert found[1] == (20, 70, STRANGER, NOT_TRACED)


def test_before_it_was_created_its_creator_is_on_the_path() -> None:
    threads = [(MAIN, MAIN, 0, 0, 0), (WORKER, MAIN, 40, 1, 0)]
    created = np.array([(40, 0, WORKER, MAIN, MAIN)], events.CREATION)
    switches = [(0, 0, R, 0, HOLDER), (50, 1, R, 0, WORKER), (90, 1, S, WORKER, 0), (30, 0, S, HOLDER, MAIN)]
    wakeups = [(91, MAIN, WORKER, 0)]
    # Main, which has made the worker at 40, waits for it from 60 on; another one has waited for main from 10 on.
    switches += [(60, 0, S, MAIN, 0), (92, 0, R, 0, MAIN)]
    found = path(schedule(switches, wakeups, threads=threads, created=created))
    assert (60, 90, WORKER, "running") in found
    waiter = [(0, 2, R, 0, HOLDER), (10, 2, S, HOLDER, 0), (80, 2, R, 0, HOLDER)]
    threads.append((HOLDER, HOLDER, 0, 2, 2))
    both = schedule(
        [*waiter, (0, 0, R, 0, MAIN), (50, 1, R, 0, WORKER)],
        [(79, HOLDER, WORKER, 0)],
        threads=threads,
        created=created,
    )
    assert path(both, HOLDER) == [
        (0, 10, HOLDER, "running"),
        (10, 40, MAIN, "running"),
        (40, 50, WORKER, "runnable-woken"),
        (50, 79, WORKER, "running"),
        (79, 80, HOLDER, "runnable-woken"),
        (80, 100, HOLDER, "running"),
    ]


def test_two_that_seem_to_wake_each_other_end_the_walk() -> None:
    """Events that were lost in between can make two threads seem to wake each other."""
    switches = [(0, 0, R, 0, MAIN), (0, 1, R, 0, WORKER), (10, 0, S, MAIN, 0), (10, 1, S, WORKER, 0)]
    switches += [(51, 0, R, 0, MAIN), (51, 1, R, 0, WORKER)]
    found = path(schedule(switches, [(50, MAIN, WORKER, 0), (50, WORKER, MAIN, 0)]))
    assert found[1] == (10, 50, WORKER, "interruptible")


def test_wait_that_did_not_end() -> None:
    found = path(schedule([(0, 0, R, 0, MAIN), (20, 0, D, MAIN, 0)]))
    assert found == [(0, 20, MAIN, "running"), (20, 100, MAIN, "uninterruptible")]


def test_samples_add_up_and_name_who_waits_for_whom() -> None:
    scheduling = through_two()
    profile = Profile([ValueType("blocked", "nanoseconds")], scheduling=scheduling)
    made = path_profile(profile, critical_path(scheduling, 0))
    assert made.total("critical") == 100
    (deepest,) = [sample for sample in made.samples if sample.label("tid") == HOLDER]
    assert [frame.name for frame in deepest.stack] == ["main-10", "main (worker)-11", "main (holder)-12", "[running]"]
    assert (deepest.values, deepest.label("thread")) == ((40, 1), "holder")
    assert made.scheduling is scheduling


def test_thread_that_was_not_traced() -> None:
    with pytest.raises(StallscopeError, match="thread 4711 was not traced"):
        thread_of(through_two(), 4711)
    assert thread_of(through_two(), 0) == 0
    assert NO_STACK < 0
