from __future__ import annotations

import numpy as np
import pytest
from period_traces import GET, PUT, SYNC, TAKE, TICK, Recording, Run, Wait, loop, steady
from stallscope.converters.facts import thresholds
from stallscope.converters.model.steps import Reader
from stallscope.converters.summary.ended_waits import EndedWaits
from stallscope.converters.summary.step_makers import Makers
from summary_profiles import MS

STEPS = 30


def reader(made: Recording) -> Reader | None:
    """Threads for which that of row 0 waits."""
    events = made.events()
    waits = EndedWaits(events)
    ends = waits.of(0).ends
    return Makers(events, waits).of(0, np.arange(len(ends)), STEPS, (int(ends[0]), int(ends[-1])))


def tids(found: Reader | None) -> list[int]:
    assert found
    return sorted(maker.tid for maker in found.makers)


def consumer(*by: int) -> list[Run | Wait]:
    """Waits that end with these threads in turn."""
    steps = loop(steady(STEPS))
    waits = [i for i, each in enumerate(steps) if isinstance(each, Wait)]
    for n, i in enumerate(waits):
        steps[i] = Wait(GET, steps[i].time, by[n % len(by)])
    return steps


def busy(number: int = STEPS) -> list[Run | Wait]:
    return [Run(8 * MS), Wait(TICK, 2 * MS)] * number


def test_one_after_another() -> None:
    made = Recording().thread(5, consumer(6, 7)).thread(6, busy()).thread(7, busy())
    assert tids(reader(made)) == [6, 7]


def test_who_ended_a_few_by_chance() -> None:
    made = Recording().thread(5, consumer(*[6] * 29, 7)).thread(6, busy()).thread(7, busy())
    assert tids(reader(made)) == [6]


def test_who_passes_on_what_others_make() -> None:
    """A thread of the same process gets batches from the feeders of two other processes, whose mains make them."""
    made = Recording().thread(5, consumer(6)).thread(6, [Wait(SYNC, 5 * MS, 11), Wait(SYNC, 5 * MS, 21)] * STEPS)
    for pid in (10, 20):
        made.thread(pid, busy(), pid=pid).thread(pid + 1, [Wait(GET, 10 * MS, pid)] * STEPS, pid=pid)
    assert tids(reader(made)) == [10, 20]


def test_threads_that_wait_for_each_other() -> None:
    made = Recording().thread(5, consumer(6))
    made.thread(6, [Wait(SYNC, 10 * MS, 7)] * STEPS).thread(7, [Wait(SYNC, 10 * MS, 6)] * STEPS)
    assert tids(reader(made)) in ([6], [7])


def test_what_it_waits_for_the_one_who_takes_is_no_work() -> None:
    """Waits that the process of that one ends are none, if it is another process; a wait for a lock is work."""
    apart = Recording().thread(5, consumer(10)).thread(9, busy())
    apart.thread(10, [Run(4 * MS), Wait(SYNC, 3 * MS, 9), Wait(PUT, 3 * MS, 5)] * (STEPS + 1), pid=10)
    found = reader(apart)
    assert found
    assert found.work == pytest.approx(4 * MS, rel=0.1)
    within = Recording().thread(5, consumer(10)).thread(9, busy())
    within.thread(10, [Run(4 * MS), Wait(TAKE, 3 * MS, 9), Wait(PUT, 3 * MS, 5)] * (STEPS + 1))
    found = reader(within)
    assert found
    assert found.work == pytest.approx(7 * MS, rel=0.1)


def test_what_a_timer_ends_is_no_work_but_a_sleep_is() -> None:
    made = Recording().thread(5, consumer(6)).thread(6, [Run(4 * MS), Wait(PUT, 6 * MS)] * (STEPS + 1))
    found = reader(made)
    assert found
    assert found.work == pytest.approx(4 * MS, rel=0.1)
    made = Recording().thread(5, consumer(6)).thread(6, [Run(4 * MS), Wait(TICK, 6 * MS)] * (STEPS + 1))
    found = reader(made)
    assert found
    assert found.work == pytest.approx(10 * MS, rel=0.1)


@pytest.mark.parametrize("more", [0, 1])
def test_more_than_are_told(more: int) -> None:
    """A thread that everybody wakes waits for no loader."""
    # Those that end the last tenth of the waits are left out.
    tids = range(1000, 1000 + round(thresholds.MAKERS / thresholds.MAKES_BATCHES) + more)
    made = Recording().thread(5, [each for tid in tids for each in (Run(MS), Wait(GET, MS, tid))])
    for tid in tids:
        made.thread(tid, [Run(MS)])
    found = reader(made)
    assert (found is None) == bool(more)
    assert found is None or len(found.makers) == thresholds.MAKERS
