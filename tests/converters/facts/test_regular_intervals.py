from __future__ import annotations

import random

import numpy as np
import pytest
from stallscope.converters.facts.regular_intervals import Regular, regular

CHANCE = random.Random(7)


def found(intervals: list[float]) -> Regular | None:
    return regular(np.array(intervals, np.int64))


def test_equal_ones() -> None:
    assert found([100] * 10) == Regular(100, 0)


def test_too_few() -> None:
    assert found([100] * 9) is None
    assert found([]) is None


def test_jitter() -> None:
    made = found([CHANCE.gauss(1000, 100) for _ in range(400)])
    assert made
    assert made.median == pytest.approx(1000, rel=0.03)
    assert made.deviation == pytest.approx(67, rel=0.2)


def test_some_that_are_slow() -> None:
    """One in ten may take several times as long, as long as they have less time than all others."""
    assert found([100] * 9 + [400]) == Regular(100, 0)
    assert found(([100] * 9 + [400]) * 10) == Regular(100, 0)
    assert found([100] * 9 + [1000]) is None
    assert found(([100] * 4 + [400]) * 10) is None


@pytest.mark.parametrize("number", [20, 21])
def test_two_lengths_that_take_turns(number: int) -> None:
    """Lengths whose median distance is 0 if there is one more of the short ones."""
    assert found(([100, 300] * number)[:number]) is None


def test_random_ones() -> None:
    assert not any(found([CHANCE.expovariate(1 / 1000) for _ in range(200)]) for _ in range(50))


def test_bursts() -> None:
    assert found(([1] * 9 + [1000]) * 10) is None


def test_two_periods_that_interleave() -> None:
    """Two loops that come to one place: every 100 and every 70 ns."""
    times = np.unique(np.concatenate([np.arange(0, 10_000, 100), np.arange(13, 10_000, 70)]))
    assert regular(np.diff(times)) is None


def test_that_no_time_passes() -> None:
    assert found([0] * 20) in (None, Regular(0, 0))
