"""Verdicts on the processes of two runs, matched by name and rank."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...facts import thresholds
from ...facts.frame_names import without_line
from ...facts.ranks import ranks_of
from ...model import Profile
from ...summary.judging import read
from ..process_verdicts import ProcessVerdict, each_process
from .judgement import overlap
from .statistic import mean

_Who = tuple[str, int | None]
_Place = tuple[str, tuple[str, ...], str]


class Held(NamedTuple):
    """Verdict on processes of one name, or rank, in the runs of one side: that of which most would be saved."""

    kind: str
    """Kind, one of `rules.verdict.KINDS`; `IDLE` if nothing holds them up."""
    frames: tuple[str, ...]
    """Place without lines, so that an edited script is still found; () if it is not known. Hostile."""
    kernel: str
    """Function of the kernel in which they wait; "" if it is not known."""
    rate: float
    """Time for which their threads are held up: s per s of the trace."""
    share: float | None
    """Time for which these threads are held up, as a share of theirs; None if that is not known."""

    @property
    def place(self) -> _Place:
        return self.kind, self.frames, self.kernel


class Pair(NamedTuple):
    """Verdicts before and after; None where there is no such process. ``process`` is hostile."""

    process: str
    rank: int | None
    before: Held | None
    after: Held | None
    overlaps: bool = False
    """Whether some run of a side is held up there no more, or no less, than one of the other side."""

    @property
    def is_same(self) -> bool:
        """Whether they are held up by the same, in the same place."""
        return self.before is not None and self.after is not None and self.before.place == self.after.place

    @property
    def weight(self) -> float:
        """Time by which they differ, in s per s of the trace: all of it if they are held up by something else."""
        before, after = (each.rate if each else 0.0 for each in (self.before, self.after))
        return abs(after - before) if self.is_same else max(before, after)

    @property
    def differs(self) -> bool:
        """Whether that matters, and is more than runs of a side differ by."""
        return not self.overlaps and self.weight >= thresholds.COMPARED_LEAST


def verdict_pairs(before: Sequence[Profile], after: Sequence[Profile]) -> tuple[Pair, ...]:
    """Verdicts on all processes that are held up on one side at least, those that differ most first."""
    one, other = _held(before), _held(after)
    pairs = (_pair(who, one.get(who), other.get(who)) for who in {**one, **other})
    matter = (each for each in pairs if any(held and held.rate for held in (each.before, each.after)))
    return tuple(sorted(matter, key=lambda each: (-each.weight, str(each))))


class _Side(NamedTuple):
    """A verdict, and the rates in each run by place."""

    held: Held
    runs: tuple[Mapping[_Place, float], ...]


def _pair(who: _Who, before: _Side | None, after: _Side | None) -> Pair:
    if before is None or after is None:
        return Pair(*who, before and before.held, after and after.held)
    places = {before.held.place, after.held.place}
    rates = ([[run.get(place, 0.0) for run in side.runs] for side in (before, after)] for place in places)
    return Pair(*who, before.held, after.held, all(overlap(*each) for each in rates))


def _held(runs: Sequence[Profile]) -> Mapping[_Who, _Side]:
    rows: dict[_Who, dict[_Place, list[tuple[int, ProcessVerdict]]]] = defaultdict(lambda: defaultdict(list))
    for number, run in enumerate(runs):
        known = read(run)
        ranks = ranks_of(known.profile)
        for row in each_process(known.facts):
            (pid,) = row.pids
            place = (row.kind, tuple(map(without_line, row.frames)), row.kernel) if row.score else (row.kind, (), "")
            rows[row.name, ranks.get(pid)][place].append((number, row))
    lengths = [each.duration_ns for each in runs]
    return {who: _side(places, lengths) for who, places in rows.items()}


def _side(places: Mapping[_Place, Sequence[tuple[int, ProcessVerdict]]], lengths: Sequence[int]) -> _Side:
    """The verdict of which most would be saved, of runs of these lengths in ns."""
    place, numbered = max(places.items(), key=lambda entry: (sum(row.score for _, row in entry[1]), entry[0]))
    rows = [row for _, row in numbered]
    time, wall = sum(each.time for each in rows), sum(each.wall for each in rows)
    share = time / wall if all(each.wall for each in rows) else None
    by_run: list[dict[_Place, float]] = [defaultdict(float) for _ in lengths]
    for where, of in places.items():
        for number, row in of:
            by_run[number][where] += row.time / lengths[number] if lengths[number] else 0.0
    return _Side(Held(*place, mean([run.get(place, 0.0) for run in by_run]), share), tuple(by_run))
