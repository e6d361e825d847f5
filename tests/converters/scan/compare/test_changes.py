"""Changes that are called such in simulated runs, whose truth is known. Seeds are fixed: the figures do not differ from
run to run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from stallscope.converters.scan.compare.changes import changes_of, with_chances
from stallscope.converters.scan.compare.intervals import Intervals, Key

PAIRS = 500
ROWS = 12
SLICES = 10
RATE = 0.3
ALIKE = 0.95
"""Correlation of neighbouring slices."""
Generator = np.random.Generator
Rates = np.ndarray[tuple[int, int], np.dtype[np.float64]]
"""Rates by row and slice."""


def independent(random: Generator) -> Rates:
    return RATE + random.normal(0, 0.05, (ROWS, SLICES))


def slow_phases(random: Generator) -> Rates:
    """Slices each of which is nearly as the one before."""
    made = random.normal(0, 0.05, (ROWS, SLICES))
    for i in range(1, SLICES):
        made[:, i] = ALIKE * made[:, i - 1] + (1 - ALIKE**2) ** 0.5 * made[:, i]
    return RATE + made


def different_runs(random: Generator) -> Rates:
    """Runs that differ by more than their slices."""
    return independent(random) + random.normal(0, 0.1, (ROWS, 1))


def slow_phases_of_different_runs(random: Generator) -> Rates:
    return slow_phases(random) + random.normal(0, 0.05, (ROWS, 1))


def skewed(random: Generator) -> Rates:
    """Rates most of which are small, as of what happens now and then."""
    return random.exponential(0.1, (ROWS, 1)) + random.exponential(0.1, (ROWS, SLICES))


def one_load_for_all(random: Generator) -> Rates:
    """Ways to spend time that have the same cause in a run, and are parts of one whole."""
    made = different_runs(random) + random.normal(0, 0.1)
    return np.abs(made) / np.abs(made).sum(axis=0) * RATE * ROWS


SIMULATED = (independent, slow_phases, different_runs, slow_phases_of_different_runs, skewed, one_load_for_all)


def run(rates: Rates) -> Intervals:
    return Intervals(SLICES, {Key("train", i, "lock"): list(map(float, row)) for i, row in enumerate(rates)})


def called(random: Generator, of: Callable[[Generator], Rates], sides: tuple[int, int], more: float = 0.0) -> set[int]:
    """Rows that are called a change in a pair; row 0 has so much more on the second side."""
    before, after = ([of(random) for _ in range(number)] for number in sides)
    for each in after:
        each[0] += more
    made = with_chances(changes_of(list(map(run, before)), list(map(run, after))), [])
    assert made.tested == ROWS
    return {each.key.rank for each in made.changes if each.is_change and each.key.rank is not None}


@pytest.mark.parametrize("sides", [(3, 3), (5, 5), (3, 6)])
@pytest.mark.parametrize("of", SIMULATED)
def test_pairs_without_a_change(of: Callable[[Generator], Rates], sides: tuple[int, int]) -> None:
    """Finds that in at most 5 % of pairs any row is called a change."""
    random = np.random.default_rng(29)
    assert sum(bool(called(random, of, sides)) for _ in range(PAIRS)) <= 0.05 * PAIRS


@pytest.mark.parametrize("of", [independent, slow_phases])
def test_a_change_is_found(of: Callable[[Generator], Rates]) -> None:
    """Finds it in 95 % of pairs, and in at most 5 % of pairs another row."""
    random = np.random.default_rng(29)
    found = [called(random, of, (3, 3), more=0.8) for _ in range(PAIRS)]
    assert sum(0 in each for each in found) >= 0.95 * PAIRS
    assert sum(bool(each - {0}) for each in found) <= 0.05 * PAIRS


def test_more_runs_find_less() -> None:
    """A difference that three runs of each do not show in every pair, five show in nearly all."""
    random = np.random.default_rng(29)
    few, more = (sum(0 in called(random, independent, (n, n), 0.1) for _ in range(200)) for n in (3, 5))
    assert few < 120
    assert more > 190


def test_a_sides_slices_are_known() -> None:
    (change,) = changes_of([Intervals(2, {Key("a", None, "io"): [0.1, 0.4]})], [Intervals(1, {})])
    assert change.before == ((0.25,), 0.1, 0.4)
    assert change.after == ((0.0,), 0.0, 0.0)
