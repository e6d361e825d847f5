"""Times of slices of several runs by what threads do: what differs, and whether that is more than noise.

The times of slices are parts of the time of threads: no moment is counted twice, so that what grows in one row is what
shrinks in others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ...facts import thresholds
from ...rules.verdict import IDLE
from .intervals import Intervals, Key
from .judgement import differs
from .statistic import Welch, holm, mean, welch
from .steps import StepChange


class Side(NamedTuple):
    """Rates of a key on one side, in s per s of the trace."""

    runs: tuple[float, ...]
    """Rates of the runs, one each."""
    lowest: float
    """Least rate of a slice, of all runs."""
    highest: float

    @property
    def rate(self) -> float:
        """Mean of the runs."""
        return mean(self.runs)


@dataclass(frozen=True, slots=True)
class Change:
    """Rates of one key before and after, and what speaks against noise."""

    key: Key
    before: Side
    after: Side
    welch: Welch | None = None
    """Test of the runs; None if there are too few of them, or if too little time is spent in this way."""
    chance: float | None = None
    """Probability of a difference like this without a change, corrected for all rows that are tested; None without a
    test."""

    @property
    def difference(self) -> float:
        return self.after.rate - self.before.rate

    @property
    def is_idle(self) -> bool:
        """Whether it is the time of threads with nothing to do."""
        return self.key.kind == IDLE

    @property
    def matters(self) -> bool:
        return abs(self.difference) >= thresholds.COMPARED_LEAST

    @property
    def is_change(self) -> bool:
        """Whether it matters and is more than noise."""
        return self.matters and differs(self.chance)


def changes_of(before: Sequence[Intervals], after: Sequence[Intervals]) -> list[Change]:
    """All ways to spend time, tested if there are enough runs. A run without slices does not count."""
    one, other = ([each for each in side if each.number] for side in (before, after))
    if not one or not other:
        return []
    keys = {key: None for run in (*one, *other) for key in run.rates}
    enough = min(len(one), len(other)) >= thresholds.COMPARED_RUNS
    return [_change(key, _side(one, key), _side(other, key), enough) for key in keys]


def _change(key: Key, before: Side, after: Side, enough: bool) -> Change:
    tested = enough and max(before.rate, after.rate) >= thresholds.COMPARED_LEAST
    return Change(key, before, after, welch(before.runs, after.runs) if tested else None)


def _side(runs: Sequence[Intervals], key: Key) -> Side:
    series = [run.rates.get(key, [0.0] * run.number) for run in runs]
    return Side(tuple(map(mean, series)), min(map(min, series)), max(map(max, series)))


class Judged(NamedTuple):
    """Rows with their chances; those first that are more than noise, idling last, then by the difference."""

    changes: tuple[Change, ...]
    """Changes that matter."""
    steps: tuple[StepChange, ...]
    tested: int
    """Number of rows that were tested."""


def with_chances(changes: Sequence[Change], steps: Sequence[StepChange]) -> Judged:
    """The rows with their chances, corrected together for all that are tested."""
    tests = [*(each.welch for each in changes), *(each.welch for each in steps)]
    tested = [test.chance for test in tests if test]
    chances = iter(holm(tested))
    judged = [replace(each, chance=next(chances)) if each.welch else each for each in changes]
    judged_steps = [replace(each, chance=next(chances)) if each.welch else each for each in steps]
    matter = [each for each in judged if each.matters]
    return Judged(
        tuple(
            sorted(matter, key=lambda each: (not each.is_change, each.is_idle, -abs(each.difference), str(each.key)))
        ),
        tuple(sorted(judged_steps, key=lambda each: (not each.is_told, -abs(each.difference), str(each.key)))),
        len(tested),
    )
