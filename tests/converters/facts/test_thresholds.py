"""Each threshold is pinned from both sides: a little below it another verdict is found than a little above it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import blame_pins
import pins
import pytest
from stallscope.converters.facts import thresholds
from stallscope.converters.facts.thresholds import Threshold
from stallscope.converters.rules import gil_main
from stallscope.converters.rules.ranking import judge
from summary_profiles import MS, POLL, READ, SECOND, SLEEP, SPIN, facts_of, waiting
from verdict_profiles import FSYNC, blocked, held_by_gil, herd, one, whole_host, with_quota, workers, yielding

TEN = 10 * SECOND


class Pin(NamedTuple):
    """A value below the threshold, one above (or both, where it is a number of things), and what is found of either."""

    below: float
    above: float
    found: Callable[[float], object]


def are_near(waits: int, difference: float) -> bool:
    """A main thread's waits, and a quota's stops, which save less by this share."""
    profile = with_quota(one(FSYNC, TEN, runs=MS, state="uninterruptible", count=waits), round(TEN * (1 - difference)))
    return judge(facts_of(profile)).is_equal


PINS: dict[str, tuple[Pin, ...]] = {
    "SIGNIFICANT": (
        Pin(0.049, 0.051, pins.held_up_for),
        Pin(0.049, 0.051, pins.held_up_beside_others),
        Pin(0.049, 0.051, pins.waits_for_others),
        Pin(0.049, 0.051, pins.is_busy),
        Pin(0.049, 0.051, pins.works_beside),
        Pin(0.049, 0.051, pins.busy_beside),
        Pin(0.049, 0.051, blame_pins.matters_for_waits),
    ),
    "TELLING": (Pin(0.098, 0.102, pins.places_told),),
    "WORTH": (Pin(0.098, 0.102, lambda x: pins.is_second(with_quota(blocked(TEN, MS), round(x * TEN)))),),
    "WORTH_RUNNING": (Pin(0.39, 0.41, lambda x: pins.is_second(blocked(TEN, round(x * TEN)))),),
    "NOISE_LEAST": (Pin(0.0190, 0.0205, lambda x: are_near(10**6, math.sqrt(2) * x)),),
    "NOISE_MOST": (Pin(0.099, 0.103, lambda x: are_near(1, x)),),
    "UNCLEAR": (Pin(0.49, 0.51, pins.is_unclear),),
    "AT_WORK_SWITCHES": (Pin(4.8, 5, lambda x: pins.are_at_work(0.0001, round(10 * x))),),
    "AT_WORK_CPU": (Pin(0.0049, 0.0051, pins.are_at_work),),
    "SLIGHT": (Pin(0.019, 0.021, lambda x: pins.confidence(whole_host(one(READ, 9 * SECOND, runs=round(x * TEN))))),),
    "IDLE_CPU": (Pin(0.0099, 0.0101, pins.hardly_runs),),
    "RELATED_NAMES": (Pin(6, 7, pins.related),),
    "CAUSE": (
        Pin(0.195, 0.205, pins.occupied),
        Pin(0.195, 0.205, pins.occupied_while),
        Pin(0.195, 0.205, pins.comes_last),
    ),
    "LATE_TIMES": (Pin(1.95, 2.05, lambda x: pins.comes_last(x * 0.2, longest=0.2, least=0.7)),),
    "LATE_WAITS": (Pin(0.33, 0.34, lambda x: pins.comes_last(0.5, waits=0.9 * x)),),
    "BLAMED": (Pin(0.29, 0.31, blame_pins.ends),),
    "DOES_MOSTLY": (Pin(0.49, 0.51, blame_pins.runs_for),),
    "BLOCKED_ITSELF": (Pin(0.79, 0.81, blame_pins.blocked_itself),),
    "HELD_MATTERS": (Pin(0.199, 0.201, lambda x: blame_pins.has_it(10 * x, 10 * x)),),
    "HELD_MOSTLY": (Pin(0.49, 0.51, lambda x: blame_pins.has_it(4, 4 * x)),),
    "HOLDER_SHARE": (Pin(0.099, 0.101, blame_pins.having),),
    "HERD_THREADS": (Pin(7, 8, lambda x: pins.is_herd(herd(round(x)))),),
    "HERD_RUNS": (Pin(19_900, 20_100, lambda x: pins.is_herd(herd(runs=x))),),
    "HERD_WAKEUPS": (Pin(99, 100, lambda x: pins.is_herd(herd(often=x))),),
    "HERD_ALIKE": (Pin(0.66, 0.67, lambda x: pins.is_herd(herd(last=x))),),
    "CROWDED": (Pin(1.19, 1.21, lambda x: pins.is_crowd(8, cores=2, waits=4 * x - 2)),),
    "CROWD_WAITS": (Pin(0.195, 0.205, lambda x: pins.is_crowd(8, cores=8 * (1 - x), waits=8 * x)),),
    "CROWD_CORE": (
        Pin(0.049, 0.051, lambda x: pins.is_crowd(2, cores=0.15, waits=x)),
        Pin(0.049, 0.051, pins.takers),
    ),
    "CROWD_MEMBER": (Pin(0.049, 0.051, pins.members),),
    "MATTERS_FOR_HOST": (Pin(0.0195, 0.0205, pins.matters_for_host),),
    "POOLS_WANT": (Pin(1.45, 1.55, pins.is_hint),),
    "CORES_TAKEN": (Pin(0.59, 0.61, pins.others_have_cores),),
    "THROTTLED": (
        Pin(0.019, 0.02, lambda x: pins.throttled(round(x * 1_000), 0)),
        Pin(0.0199, 0.0201, lambda x: pins.throttled(0, x * TEN)),
    ),
    "ANEW_PER_SECOND": (Pin(49, 50, lambda x: pins.made_anew(number=round(10 * x))),),
    "ANEW_THREADS": (Pin(19, 20, pins.few_anew),),
    "ANEW_LIFE": (Pin(0.199, 0.201, lambda x: pins.made_anew(number=600, life=round(x * TEN))),),
    "POLLS_RUN": (Pin(0.49, 0.51, pins.polls_for),),
    "POLLS_IN": (Pin(0.49, 0.5, lambda x: pins.polls(yielding(round(100 * x), 100 - round(100 * x)))),),
    "POLLS_SEEN": (
        Pin(9, 10, lambda x: pins.polls(yielding(round(x), 0))),
        Pin(9, 10, lambda x: pins.loses_core_in(round(x), 0)),
    ),
    "RUNS_IN": (Pin(0.24, 0.26, pins.runs_in),),
    "SHORT_SLEEP": (Pin(49_900_000, 50_100_000, lambda x: pins.sleeps_again(50, x)),),
    "SLEEPS_AGAIN": (Pin(9, 10, lambda x: pins.sleeps_again(x, 20_000_000)),),
    "PREEMPTED_IN": (Pin(0.49, 0.51, lambda x: pins.loses_core_in(round(100 * x), 100 - round(100 * x))),),
    "GIL_MATTERS": (Pin(0.049, 0.051, lambda x: bool(pins.gil_told(x))),),
    "GIL_HOLDER": (
        Pin(0.099, 0.101, lambda x: "loader" in pins.gil_told(0.5, x)),
        Pin(0.099, 0.101, lambda x: "hog" in pins.gil_told(0.5, 1, x)),
    ),
    "GIL_MAIN": (Pin(0.499, 0.5, lambda x: bool(gil_main.find(facts_of(held_by_gil(round(x * TEN)))))),),
    "SLEEP_SAVES": (Pin(0.49, 0.51, pins.peer_over_sleep),),
    "EVENTS_SAVE": (Pin(0.195, 0.205, pins.rival(waiting(POLL), 9_900 * MS)),),
    "EVENTS_BESIDE_WORK_SAVE": (Pin(0.59, 0.61, pins.rival(one(POLL, 9 * SECOND, runs=SECOND), 9 * SECOND)),),
    "ASIDE_SAVES": (Pin(0.49, 0.51, pins.aside), Pin(0.49, 0.51, pins.rival(workers(), 16 * SECOND))),
    "UNKNOWN_SAVES": (
        Pin(0.195, 0.205, pins.never_moved),
        Pin(0.195, 0.205, pins.rival(whole_host(waiting(READ)), 9_900 * MS)),
    ),
    "STUCK_BESIDE_WORK_SAVES": (Pin(0.49, 0.51, pins.stuck),),
    "RUNNING_SAVES": (Pin(0.49, 0.51, pins.rival(one(SLEEP, MS, runs=TEN), TEN)),),
    "SAMPLED_SAVES": (Pin(0.99, 1.01, pins.rival(one(SLEEP, MS, runs=TEN), TEN, has_samples=True)),),
    "QUEUED_SAVES": (Pin(0.74, 0.76, pins.rival(one(SPIN, TEN, state="runnable-preempted"), TEN)),),
    "EXPLAINED": (Pin(0.985, 0.995, pins.between), Pin(0.985, 0.995, pins.before_running)),
    "MOSTLY_ONE": (Pin(0.69, 0.71, pins.said_of_busy),),
}
"""By the names of thresholds: a new one needs one, too."""

ALL = [(name, pin) for name, pins in PINS.items() for pin in pins]


def test_all_are_pinned() -> None:
    assert list(PINS) == list(thresholds.table())


@pytest.mark.parametrize(("name", "pin"), ALL)
def test_it_decides_at_its_value(name: str, pin: Pin) -> None:
    assert pin.below <= thresholds.table()[name] <= pin.above
    assert pin.found(pin.below) != pin.found(pin.above)


@pytest.mark.parametrize(("name", "pin"), ALL)
def test_it_alone_decides(name: str, pin: Pin, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a higher one, both sides are below it: no other number is pinned here."""
    below = pin.found(pin.below)
    higher = Threshold(pin.above * 1.1, "", "")
    monkeypatch.setattr(thresholds, name, higher)
    assert pin.found(pin.above) == below


@pytest.mark.parametrize(("name", "threshold"), thresholds.table().items())
def test_each_has_a_unit_and_a_reason(name: str, threshold: Threshold) -> None:
    assert threshold.unit
    assert threshold.reason.endswith(".")
    assert not threshold.reason.endswith("..")
    assert repr(threshold) == f"Threshold({float(threshold):g}, {threshold.unit!r})"
