from __future__ import annotations

from dataclasses import replace

from period_traces import BATCH, GET, TAKE, TICK, TIMER, UNKNOWN, Recording, Run, Wait
from stallscope.converters.facts.wait_functions import LOADER
from stallscope.converters.facts.wait_kinds import LOCK, SLEEP, THREAD
from stallscope.converters.facts.wait_kinds import UNKNOWN as NOT_KNOWN
from stallscope.converters.model.scheduling import NO_STACK, OPEN, Scheduling
from stallscope.converters.summary.ended_waits import NOBODY, EndedWaits


def two() -> Scheduling:
    """Thread 5 (row 0) is woken by 6 (row 1), by a timer, and by nobody known; 6 by 5."""
    made = Recording()
    made.thread(5, [Run(10), Wait(GET, 20, by=6, queued=5), Run(5), Wait(GET, 30), Run(5), Wait(TICK, 7, by=UNKNOWN)])
    made.thread(6, [Run(1), Wait(TAKE, 50, by=5)])
    return made.events()


def test_who_ended_each() -> None:
    waits = EndedWaits(two())
    own = waits.of(0)
    assert own.begins.tolist() == [10, 40, 75]
    assert own.ends.tolist() == [30, 70, 82]
    assert own.lengths.tolist() == [20, 30, 7]
    assert own.wakers.tolist() == [1, NOBODY, NOBODY]
    assert own.timed.tolist() == [False, True, True]
    assert waits.of(1).wakers.tolist() == [0]
    assert waits.of(2).begins.tolist() == []


def test_threads_with_many() -> None:
    waits = EndedWaits(two())
    assert (waits.rows(1), waits.rows(2), waits.rows(4)) == ([0, 1], [0], [])


def test_what_they_are_for() -> None:
    made = Recording().thread(5, [Wait(stack, 10) for stack in (GET, TICK, TAKE, BATCH)]).events()
    waits = EndedWaits(made)
    stacks = waits.of(0).stacks.tolist()
    assert [waits.wait(stack).kind for stack in stacks[:3]] == [THREAD, SLEEP, LOCK]
    assert waits.wait(stacks[3]).job == LOADER
    assert waits.wait(NO_STACK).kind == NOT_KNOWN


def test_those_that_were_not_seen_whole() -> None:
    made = two()
    made.blocked["end"][made.blocked["end"] == made.end] = OPEN
    later = replace(made, begin=20)
    assert EndedWaits(later).of(0).over.tolist() == [True, True, False]
    assert EndedWaits(later).of(0).begins.tolist() == [20, 40, 75]


def test_without_wake_ups() -> None:
    made = replace(two(), wakeups=two().wakeups[:0])
    assert EndedWaits(made).of(0).wakers.tolist() == [NOBODY] * 3
    assert EndedWaits(replace(made, blocked=made.blocked[:0])).rows(0) == []


def test_a_wake_up_of_before_ended_nothing() -> None:
    """Thread 5 was woken while it ran: that is not who ended its next wait."""
    made = two()
    made.wakeups["time"][made.wakeups["time"] == 30] = 5
    assert EndedWaits(made).of(0).wakers.tolist()[0] == NOBODY
    assert TIMER == 0


def test_another_thread_that_was_woken_meanwhile_is_nobody() -> None:
    made = Recording().thread(5, [Wait(GET, 50, by=7)]).thread(6, [Wait(GET, 60, by=UNKNOWN)]).thread(7, [Run(9)])
    waits = EndedWaits(made.events())
    assert waits.of(0).wakers.tolist() == [2]
    assert waits.of(1).wakers.tolist() == [NOBODY]
