"""Differences of two runs of one job, or of several runs of each: what takes more or less time.

All rates are s (of all threads) per s of the trace, so that runs of different lengths can be compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...facts import thresholds
from ...facts.frame_names import label
from ...facts.identity import with_own_ids
from ...facts.ranks import ranks_of
from ...facts.scripts import with_scripts
from ...model import Profile
from ...model.states import RUNNING
from ...rules.verdict import IDLE
from .changes import Change, changes_of, with_chances
from .intervals import intervals_of, names_of
from .locks import LockChange, lock_changes
from .steps import StepChange, step_changes
from .verdicts import Pair, verdict_pairs


class Moved(NamedTuple):
    """Rates that have no intervals: of a function that runs, or of a call. ``process`` and ``name`` are hostile."""

    process: str
    rank: int | None
    name: str
    before: float
    after: float

    @property
    def difference(self) -> float:
        return self.after - self.before


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
    changes: tuple[Change, ...]
    functions: tuple[Moved, ...]
    """Functions that run, by the innermost frame outside the kernel. Not judged: samples have no intervals."""
    calls: tuple[Moved, ...]
    """Calls that were timed, on their own: their times are also in ``changes``."""
    processes: tuple[Row, ...]
    """Processes whose number differs."""
    verdicts: tuple[Pair, ...] = ()
    """Verdicts on processes, those that differ most first."""
    steps: tuple[StepChange, ...] = ()
    """Steps that both sides have, those that differ most first."""
    locks: tuple[LockChange, ...] = ()
    """Locks for which threads wait longer or shorter. Not judged; these times are also in ``changes``."""
    tested: int = 0
    """Number of rows that were tested: changes, also those that do not matter, and steps."""

    @property
    def judged(self) -> bool:
        """Whether there are enough runs to tell a change from the noise between runs."""
        return min(self.runs) >= thresholds.COMPARED_RUNS

    @property
    def told(self) -> tuple[Change, ...]:
        """Changes that are more than noise; if that cannot be known, all."""
        return tuple(each for each in self.changes if each.is_change or each.chance is None)

    @property
    def first(self) -> Change | None:
        """The change that costs most: the largest increase that is no idling. None without any."""
        return next((each for each in self.told if each.difference > 0 and each.key.kind != IDLE), None)

    @property
    def first_step(self) -> StepChange | None:
        """The steps that differ most, beyond noise if that can be known. None without any."""
        return next((each for each in self.steps if each.is_told), None)


def compare(before: Sequence[Profile], after: Sequence[Profile]) -> Comparison:
    """Differences of the runs ``after`` against the runs ``before``, one or more of each."""
    verdicts = verdict_pairs(before, after)
    before, after = [named(each) for each in before], [named(each) for each in after]
    sides = [intervals_of(each) for each in before], [intervals_of(each) for each in after]
    judged = with_chances(changes_of(*sides), step_changes(before, after))
    durations = (_duration(before), _duration(after))
    return Comparison(
        durations,
        (sum(each.number for each in sides[0]), sum(each.number for each in sides[1])),
        (len(before), len(after)),
        judged.changes,
        _moved(_functions(before), _functions(after), durations),
        _moved(_calls(before), _calls(after), durations),
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


_Who = tuple[str, int | None, str]


def _functions(runs: Sequence[Profile]) -> Counter[_Who]:
    """ns on a core by process, rank and the innermost function outside the kernel."""
    found: Counter[_Who] = Counter()
    for profile in runs:
        if "wall" not in [each.name for each in profile.value_types]:
            continue
        column, ranks, names = profile.index("wall"), ranks_of(profile), names_of(profile)
        for sample in profile.samples:
            if not sample.stack or not sample.values[column] or sample.label("state") != RUNNING:
                continue
            leaf = next((each for each in reversed(sample.stack) if each.kind != "kernel"), sample.stack[-1])
            pid = sample.label("pid")
            name = str(sample.label("process") or "")
            process, rank = (names.get(pid, name), ranks.get(pid)) if isinstance(pid, int) else (name, None)
            found[process, rank, label(leaf)] += sample.values[column]
    return found


def _calls(runs: Sequence[Profile]) -> Counter[_Who]:
    found: Counter[_Who] = Counter()
    for profile in runs:
        ranks, names = ranks_of(profile), names_of(profile)
        for call in profile.calls:
            found[names.get(call.pid, call.process), ranks.get(call.pid), call.name] += call.total + call.open_time
    return found


def _moved(before: Counter[_Who], after: Counter[_Who], durations: tuple[int, int]) -> tuple[Moved, ...]:
    made = (
        Moved(
            *who,
            *(side[who] / length if length else 0.0 for side, length in zip((before, after), durations, strict=True)),
        )
        for who in {**before, **after}
    )
    matter = (each for each in made if abs(each.difference) >= thresholds.COMPARED_LEAST)
    return tuple(sorted(matter, key=lambda each: (-abs(each.difference), str(each))))


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
