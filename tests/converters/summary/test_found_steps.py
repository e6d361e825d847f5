"""Steps that nobody named, in events written down by hand. With real ones: tests/live/test_found_steps.py."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from period_traces import (
    BATCH,
    GET,
    NOWHERE,
    PUT,
    SYNC,
    TAKE,
    TICK,
    TIMER,
    UNKNOWN,
    Recording,
    Run,
    Wait,
    loop,
    steady,
)
from stallscope.converters.model.scheduling import CALL, CallName, Scheduling
from stallscope.converters.model.steps import Steps
from stallscope.converters.summary.found_steps import found_steps
from summary_profiles import MS


def of(*loops: list[Run | Wait]) -> tuple[Steps, ...]:
    """Steps of threads 5, 6, … of process 5."""
    made = Recording()
    for i, each in enumerate(loops):
        made.thread(5 + i, each)
    return found_steps(made.events())


def only(*loops: list[Run | Wait]) -> Steps:
    (found,) = of(*loops)
    return found


def test_a_regular_loop() -> None:
    steps = only(loop(steady(20), work=0.4))
    assert steps.found
    assert (steps.title, steps.name, steps.pid, steps.tid) == (" → ".join(steps.found.place.frames), "", 5, 5)
    assert "next_batch" in steps.title
    assert (steps.steps.count, steps.median, steps.p90, steps.max) == (20, 10 * MS, 10 * MS, 10 * MS)
    assert steps.per_second == 100
    assert (steps.found.deviation, steps.found.waited, steps.found.is_timed) == (0, 120 * MS, False)
    assert (steps.steps.on_cpu, steps.steps.blocked, steps.steps.runnable) == (80 * MS, 120 * MS, 0)
    assert [wait.time for wait in steps.steps.waits] == [120 * MS]
    assert (steps.between.count, steps.between.wall) == (19, 0)


def test_jitter_and_percentiles() -> None:
    chance = random.Random(3)
    lengths = [chance.gauss(10 * MS, MS) for _ in range(300)]
    steps = only(loop(lengths))
    assert steps.found
    assert steps.steps.count == 300
    assert steps.median == pytest.approx(10 * MS, rel=0.05)
    assert steps.p90 == pytest.approx(sorted(lengths)[270], rel=0.01)
    assert steps.found.deviation == pytest.approx(0.67 * MS, rel=0.25)


def test_too_few_intervals() -> None:
    assert of(loop(steady(9))) == ()
    assert len(of(loop(steady(10)))) == 1


def test_a_timer_that_polls_is_no_step() -> None:
    polls = loop(steady(50), TICK, work=0.05, by=TIMER)
    assert of(polls) == ()
    waits_with_timeout = loop(steady(50), GET, work=0.05, by=TIMER)
    assert of(waits_with_timeout) == ()
    # One sleep after the other.
    both = [each for wait in polls for each in (wait, Wait(GET, 30 * MS, TIMER))]
    assert of(both) == ()


def test_a_loop_that_mostly_works_between_its_sleeps() -> None:
    steps = only(loop(steady(50), TICK, work=0.6, by=TIMER))
    assert steps.found
    assert steps.found.is_timed
    assert steps.reader is None


def test_two_lengths_that_take_turns() -> None:
    assert of(loop([10 * MS, 30 * MS] * 20)) == ()
    assert of(loop([10 * MS, 30 * MS] * 20 + [10 * MS])) == ()


def test_bursts() -> None:
    assert of(loop(([MS] * 9 + [100 * MS]) * 10)) == ()


def test_random_intervals() -> None:
    chance = random.Random(5)
    assert of(loop([chance.expovariate(1 / (10 * MS)) for _ in range(300)])) == ()


def test_a_part_of_the_trace_is_not_enough() -> None:
    assert of([*loop(steady(20)), Run(250 * MS)]) == ()
    assert len(of([*loop(steady(20)), Run(150 * MS)])) == 1


def test_who_waits_only_is_no_loop() -> None:
    """Waits for something that others do regularly, and of which this thread only hears."""
    assert of(loop(steady(30), work=0.09)) == ()
    assert len(of(loop(steady(30), work=0.11))) == 1


def test_a_wait_for_the_loader_of_data_needs_no_work() -> None:
    assert "__next__" in only(loop(steady(30), BATCH, work=0.01)).title


def test_locks_and_waits_without_a_place_are_no_border() -> None:
    assert of(loop(steady(30), TAKE)) == ()
    assert of(loop(steady(30), NOWHERE)) == ()


def test_the_longest_period_is_the_step() -> None:
    """Four waits for another process, then one for a batch: both come regularly."""
    step = [*[each for _ in range(4) for each in (Run(2 * MS), Wait(SYNC, 2 * MS, 9))], Run(MS), Wait(GET, MS, 6)]
    steps = only(step * 30)
    assert "next_batch" in steps.title
    assert (steps.steps.count, steps.median) == (29, 18 * MS)


def test_the_loader_comes_before_what_takes_longer() -> None:
    """A save in every fifth step."""
    step = [Run(5 * MS), Wait(BATCH, 5 * MS, 6)]
    steps = only([*step * 5, Wait(SYNC, 2 * MS, 9)] * 20)
    assert "__next__" in steps.title
    assert steps.median == 10 * MS


def test_the_thread_is_the_main_one_or_that_which_works_most() -> None:
    lazy, busy = loop(steady(30), work=0.2), loop(steady(30), SYNC, work=0.9)
    assert only(lazy, busy).tid == 5
    assert only([Run(MS)], lazy, busy).tid == 7
    assert only([Run(MS)], busy, lazy).tid == 6


def test_ranks_have_one_place_in_common() -> None:
    """Each rank waits in two places once a step; which of them is longer differs."""
    made = Recording()
    for i in range(3):
        waits = [Run(4 * MS), Wait(GET, (1 + 2 * i) * MS, 99), Run(MS), Wait(SYNC, (5 - 2 * i) * MS, 99)]
        made.thread(10 + i, waits * 20, pid=10 + i)
    found = found_steps(made.events())
    assert sorted(each.pid for each in found) == [10, 11, 12]
    assert len({each.title for each in found}) == 1


def test_who_makes_batches() -> None:
    """A thread makes one in 8 ms, and then waits until it is taken."""
    consumer = loop(steady(30), work=0.3)
    loader: list[Run | Wait] = [Run(5 * MS), Wait(TICK, 3 * MS), Wait(PUT, 2 * MS, 5)]
    reader = only(consumer, loader * 31).reader
    assert reader
    (maker,) = reader.makers
    assert (maker.pid, maker.tid, maker.thread) == (5, 6, "loader")
    assert reader.work == pytest.approx(8 * MS, rel=0.05)
    assert reader.at_most == pytest.approx(125, rel=0.05)
    assert reader.per_second == pytest.approx(100)


def test_nobody_makes_what_a_timer_or_the_unknown_ends() -> None:
    assert only(loop(steady(30), SYNC, by=TIMER)).reader is None
    assert only(loop(steady(30), SYNC, by=UNKNOWN)).reader is None


def test_events_that_were_dropped() -> None:
    """Steps from the first wait that ends in the recording."""
    made = Recording().thread(5, loop(steady(40))).events()
    later = replace(made, begin=made.end // 2)
    (steps,) = found_steps(later)
    assert steps.steps.count == 20


def test_nothing_at_all() -> None:
    assert found_steps(Scheduling(100)) == ()
    named = replace(Scheduling(100), call_names=[CallName("f", "step")])
    assert len(named.calls) == 0
    assert found_steps(named) == ()
    assert CALL.names
