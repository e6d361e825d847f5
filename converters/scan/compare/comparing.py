"""Differences of two runs of one job, or of several runs of each: what takes more or less time.

All rates are s (of all threads) per s of the trace, so that runs of different lengths can be compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...facts import thresholds
from ...facts.identity import with_own_ids
from ...facts.ranks import ranks_of
from ...facts.scripts import with_scripts
from ...model import Profile
from .changes import Change, changes_of, with_chances
from .intervals import intervals_of, names_of
from .locks import LockChange, lock_changes
from .moved import Moved, calls, functions
from .steps import StepChange, step_changes
from .verdicts import Pair, verdict_pairs
from .whole_runs import run_changes


class Row(NamedTuple):
    """Number of processes of one name, or rank, before and after."""

    process: str
    rank: int | None
    before: int
    after: int


@dataclass(frozen=True)
class Comparison:
    """Differences of two runs, the largest first."""

    durations: tuple[int, int]
    """ns of all traces before, and after."""
    intervals: tuple[int, int]
    runs: tuple[int, int]
    sliced: tuple[int, int]
    """Runs that have slices: the others do not count in ``changes``."""
    changes: tuple[Change, ...]
    functions: tuple[Moved, ...]
    """Functions that run, by the innermost frame outside the kernel. Not tested."""
    calls: tuple[Moved, ...]
    """Calls that were timed, on their own: their times are also in ``changes``."""
    processes: tuple[Row, ...]
    """Processes whose number differs."""
    verdicts: tuple[Pair, ...] = ()
    """Verdicts on processes, those that differ most first."""
    steps: tuple[StepChange, ...] = ()
    """Steps that both sides have, and whole runs, those that differ most first."""
    locks: tuple[LockChange, ...] = ()
    """Locks for which threads wait longer or shorter. Not tested; these times are also in ``changes``."""
    tested: int = 0
    """Number of rows that were tested: changes, also those that do not matter, and steps."""

    @property
    def judged(self) -> bool:
        """Whether there are enough runs with slices to tell a change from the noise between runs."""
        return min(self.sliced) >= thresholds.COMPARED_RUNS

    @property
    def told(self) -> tuple[Change, ...]:
        """Changes that are more than noise; if that cannot be known, all."""
        return tuple(each for each in self.changes if each.is_change or each.chance is None)

    @property
    def first(self) -> Change | None:
        """The change that costs most: the largest increase that is no idling. None without any."""
        return next((each for each in self.told if each.difference > 0 and not each.is_idle), None)

    @property
    def first_step(self) -> StepChange | None:
        """The steps that differ most, beyond noise if that can be known. None without any."""
        return next((each for each in self.steps if each.is_told), None)


def compare(before: Sequence[Profile], after: Sequence[Profile]) -> Comparison:
    """Differences of the runs ``after`` against the runs ``before``, one or more of each."""
    verdicts = verdict_pairs(before, after)
    before, after = [named(each) for each in before], [named(each) for each in after]
    sides = [intervals_of(each) for each in before], [intervals_of(each) for each in after]
    judged = with_chances(changes_of(*sides), [*run_changes(before, after), *step_changes(before, after)])
    durations = (_duration(before), _duration(after))
    return Comparison(
        durations,
        (sum(each.number for each in sides[0]), sum(each.number for each in sides[1])),
        (len(before), len(after)),
        (sum(each.number > 0 for each in sides[0]), sum(each.number > 0 for each in sides[1])),
        judged.changes,
        functions(before, after),
        calls(before, after),
        _rows(before, after),
        verdicts,
        judged.steps,
        lock_changes(before, after),
        judged.tested,
    )


def named(profile: Profile) -> Profile:
    """The profile with the names under which verdicts tell its processes: those with the script that they run."""
    return with_scripts(with_own_ids(profile))[0]


def _duration(runs: Sequence[Profile]) -> int:
    return sum(each.duration_ns for each in runs)


def _rows(before: Sequence[Profile], after: Sequence[Profile]) -> tuple[Row, ...]:
    """Processes whose number per run differs, if all runs of a side agree on it."""
    one, other = _numbers(before), _numbers(after)
    rows = (Row(*who, one[who], other[who]) for who in {**one, **other})
    return tuple(sorted((each for each in rows if each.before != each.after), key=str))


def _numbers(runs: Sequence[Profile]) -> Counter[tuple[str, int | None]]:
    """The most processes that a run has of each name and rank."""
    most: Counter[tuple[str, int | None]] = Counter()
    for profile in runs:
        ranks, names = ranks_of(profile), names_of(profile)
        ids = {(each.process, each.pid) for each in profile.threads}
        ids |= {(each.process, each.pid) for each in profile.slices}
        most |= Counter((names.get(pid, name), ranks.get(pid)) for name, pid in ids)
    return most
