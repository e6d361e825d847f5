"""Locks of two runs: how long threads wait for each before and after.

An address differs from run to run: a lock that has no other name is the one for which threads wait in the same place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...base.text import json_text, printable
from ...base.units import duration
from ...facts import thresholds
from ...facts.frame_names import without_line
from ...facts.ranks import ranks_of
from ...model import Profile
from ...model.locks import KERNEL, OTHER_LOCKS, SHARED, LockTimes
from .intervals import names_of
from .judgement import overlap
from .statistic import mean

_ADDRESS = re.compile(r"(?:^|(?<= ))(?:#\d+|0x[0-9a-f]+)$")
"""End of a lock's name that differs from run to run: an address, or the number that stands for one."""


class LockKey(NamedTuple):
    """Locks that are compared. Names are hostile."""

    process: str
    """Name of the process that it belongs to; "" of one of the kernel or of several processes."""
    rank: int | None
    owned_by: str
    """`PROCESS`, `SHARED` or `KERNEL`."""
    kind: str
    name: str
    """Name without an address; "" if it has no other."""
    place: tuple[str, ...]
    """Place of most of the waits, without lines, if the name does not tell one lock; else ()."""


class LockSide(NamedTuple):
    """Waits for the locks of a key, of one side: means of its runs."""

    rate: float
    """Waits in s per s of the trace."""
    frequency: float
    """Number of waits per s of the trace."""

    @property
    def mean(self) -> float | None:
        """Length of a wait in ns; None without any."""
        return _NSEC * self.rate / self.frequency if self.frequency else None


class LockChange(NamedTuple):
    """Waits for the locks of a key, before and after."""

    key: LockKey
    before: LockSide
    after: LockSide

    @property
    def difference(self) -> float:
        """Time by which threads wait longer, in s per s of the trace."""
        return self.after.rate - self.before.rate

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``json.dumps``: rates in s per s, numbers per s of the trace, means in ns."""
        key = self.key
        return {
            "process": json_text(key.process),
            "rank": key.rank,
            "owned_by": key.owned_by,
            "kind": key.kind,
            "name": json_text(key.name),
            "frames": [json_text(frame) for frame in key.place],
            "before": self.before.rate,
            "after": self.after.rate,
            "waits_per_s": [self.before.frequency, self.after.frequency],
            "mean_ns": [mean if mean is None else round(mean) for mean in (self.before.mean, self.after.mean)],
        }


_NONE = LockSide(0.0, 0.0)


def lock_changes(before: Sequence[Profile], after: Sequence[Profile]) -> tuple[LockChange, ...]:
    """Locks for which threads wait longer or shorter than in any run of the other side, those that differ most first.
    What waits for no lock at all, such as for a condition, is left out. ``before``, ``after``: profiles with the names
    of `comparing.named`."""
    one, other = ([_run(each) for each in side] for side in (before, after))
    made = []
    for key in {key: None for run in (*one, *other) for key in run}:
        sides = [[run.get(key, _NONE) for run in side] for side in (one, other)]
        if not overlap(*([run.rate for run in side] for side in sides)):
            made.append(LockChange(key, *map(_mean_of, sides)))
    matter = (each for each in made if abs(each.difference) >= thresholds.COMPARED_LEAST)
    return tuple(sorted(matter, key=lambda each: (-abs(each.difference), str(each.key))))


def _mean_of(runs: Sequence[LockSide]) -> LockSide:
    return LockSide(mean([each.rate for each in runs]), mean([each.frequency for each in runs]))


def _run(profile: Profile) -> dict[LockKey, LockSide]:
    """Waits in a run."""
    times: Counter[LockKey] = Counter()
    waits: Counter[LockKey] = Counter()
    ranks, names, length = ranks_of(profile), names_of(profile), profile.duration_ns
    for lock in profile.locks:
        if lock.is_contention is not False and lock.name != OTHER_LOCKS:
            key = _key(lock, ranks, names)
            times[key] += lock.time
            waits[key] += lock.waits
    return {key: LockSide(times[key] / length, _NSEC * waits[key] / length) for key in times if length}


def _key(lock: LockTimes, ranks: dict[int, int], names: dict[int, str]) -> LockKey:
    name = _ADDRESS.sub("", lock.name).rstrip()
    place = () if name == lock.name else _place(lock)
    process, rank = (names.get(lock.pid, lock.process), ranks.get(lock.pid)) if lock.pid else (lock.process, None)
    return LockKey(process, rank, lock.owned_by, lock.kind, name, place)


def _place(lock: LockTimes) -> tuple[str, ...]:
    if lock.taken_in:
        return (lock.taken_in,)
    frames = max(lock.places, key=lambda each: each.time).frames if lock.places else ()
    return tuple(map(without_line, frames))


def row(change: LockChange) -> tuple[str, str, str, str, str, str]:
    """Cells of a table: s per s before, after and the difference, the mean wait before and after, and which lock it is;
    escaped."""
    one, other = change.before, change.after
    rates = (f"{one.rate:.2f}", f"{other.rate:.2f}", f"{change.difference:+.2f}")
    return (*rates, _mean(one), _mean(other), title(change.key))


def _mean(side: LockSide) -> str:
    return "-" if side.mean is None else duration(round(side.mean))


def title(key: LockKey) -> str:
    """``train (rank 3): mutex table+0x40``, ``kernel's rwsem in ext4_file_write``, escaped."""
    whose = f"{key.process} (rank {key.rank})" if key.rank is not None else key.process
    kind = f"kernel's {key.kind}" if key.owned_by == KERNEL else key.kind
    kind += " of several processes" if key.owned_by == SHARED else ""
    named = f"{kind} {key.name}" if key.name else kind
    where = f", taken in {' → '.join(key.place)}" if key.place else ""
    return printable(f"{whose}: {named}{where}" if whose else f"{named}{where}")


_NSEC = 1_000_000_000
