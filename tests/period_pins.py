"""Regular waits made by hand, by the quantity that a threshold on steps that nobody named is compared with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from period_traces import BATCH, GET, PUT, SYNC, TICK, TIMER, Recording, Run, Wait, loop, steady
from stallscope.converters.facts.regular_intervals import regular
from stallscope.converters.summary.ended_waits import EndedWaits
from stallscope.converters.summary.found_steps import found_steps
from stallscope.converters.summary.step_makers import Makers
from summary_profiles import MS


def are_enough(x: float) -> bool:
    return regular(np.full(round(x), 100)) is not None


def scatter(x: float) -> bool:
    """Whether intervals are regular of which each differs by this share of the median."""
    return regular(np.array([1000 * (1 - x), 1000, 1000 * (1 + x)] + [1000 * (1 + x), 1000 * (1 - x)] * 8)) is not None


def far(x: float) -> bool:
    """Whether intervals are, of which one in five differs by so much."""
    return regular(np.array([1000, 1000, 1000, 1000, 1000 * (1 + x)] * 10)) is not None


def near(x: float) -> bool:
    """Whether intervals are, of which this share has the same length."""
    number = round(1000 * x)
    return regular(np.array([1000] * number + [2000] * (1000 - number))) is not None


def work(x: float) -> bool:
    return bool(found_steps(Recording().thread(5, loop(steady(30), work=x)).events()))


def timed_work(x: float) -> bool:
    return bool(found_steps(Recording().thread(5, loop(steady(30), TICK, work=x, by=TIMER)).events()))


def same(x: float) -> bool:
    """Whether a place is chosen whose period is this share of another one's, if it is waited in for longer."""
    long, short = 1000, round(1000 * x)
    events = sorted([(i * long, GET) for i in range(1, 40)] + [(i * short + 7, SYNC) for i in range(1, round(40 / x))])
    does: list[Run | Wait] = []
    now = 0
    for time, stack in events:
        wait = 2 if stack is SYNC else 1
        if time - now > wait:
            does += [Run(time - now - wait), Wait(stack, wait, 9)]
            now = time
    (steps,) = found_steps(Recording().thread(5, does).events())
    return "fetch" in steps.title


def passes_on(x: float) -> bool:
    """Whether a thread passes batches on that waits for another one for this share of its time."""
    made = Recording().thread(5, loop(steady(30), by=6))
    made.thread(6, [Run(10 * MS * (1 - x)), Wait(PUT, 10 * MS * x, 7)] * 31).thread(7, [Run(400 * MS)])
    return _makers(made) == [7]


def makes(x: float) -> bool:
    """Whether another thread makes batches, too, beside one that ends this share of the waits."""
    number = round(1000 * x)
    waits = [(Run(MS), Wait(BATCH, MS, 6 if i < number else 7)) for i in range(1000)]
    made = Recording().thread(5, [each for pair in waits for each in pair])
    made.thread(6, [Run(2000 * MS)]).thread(7, [Run(2000 * MS)])
    return _makers(made) == [6, 7]


def _makers(made: Recording) -> list[int]:
    events = made.events()
    waits = EndedWaits(events)
    ends = waits.of(0).ends
    reader = Makers(events, waits).of(0, np.arange(len(ends)), 30, (int(ends[0]), int(ends[-1])))
    return sorted(each.tid for each in reader.makers) if reader else []


PINS: dict[str, tuple[float, float, Callable[[float], bool]]] = {
    "PERIOD_INTERVALS": (9, 10, are_enough),
    "PERIOD_SCATTER": (0.199, 0.201, scatter),
    "PERIOD_NEAR": (0.499, 0.501, far),
    "PERIOD_NEARLY_ALL": (0.899, 0.901, near),
    "PERIOD_WORK": (0.099, 0.101, work),
    "PERIOD_TIMED_WORK": (0.499, 0.501, timed_work),
    "PERIOD_SAME": (0.79, 0.81, same),
    "PASSES_BATCHES_ON": (0.79, 0.81, passes_on),
    "MAKES_BATCHES": (0.899, 0.901, makes),
}
"""Pins by threshold: a value below it, one above, and what they decide."""
