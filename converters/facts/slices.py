"""Times of threads in each slice of a trace, and the phases that this shows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import sqrt
from statistics import fmean, pvariance

from ..model.slices import SliceSpent, ThreadSlices
from . import thresholds


@dataclass(frozen=True)
class Phase:
    """A part of a trace in which threads mostly did one thing. Times in ns since the trace began."""

    kind: str
    """Kind of what they did, see `SliceSpent.kind`."""
    begin: int
    end: int
    share: float
    """Share of their time that they did it."""
    place: SliceSpent | None = None
    """Place with most of that time; None if it is not known, or they ran."""


@dataclass(frozen=True)
class Series:
    """Times of some threads in slices, all of the same length (ns)."""

    length: int
    first: int
    """Number of the first slice in which one of them lived."""
    kinds: Mapping[str, tuple[int, ...]]
    """ns in each slice from the first one on, by kind."""
    members: tuple[ThreadSlices, ...]

    @property
    def number(self) -> int:
        """Number of slices."""
        return len(next(iter(self.kinds.values()), ()))

    @property
    def begin(self) -> int:
        """ns since the trace began when the first of the threads began to live."""
        return (self.first + 1) * self.length - self._lived(0)

    @property
    def end(self) -> int:
        """ns since the trace began when the last of them ended, or the trace did."""
        return (self.first + self.number - 1) * self.length + self._lived(self.number - 1)

    def _lived(self, i: int) -> int:
        """ns for which the threads lived in a slice, one of them at least."""
        shifts = ((each, i - each.first + self.first) for each in self.members)
        lived = (sum(of.times[at] for of in each.spent) for each, at in shifts if 0 <= at < each.number)
        return min(max(lived, default=self.length), self.length)

    def whole(self, i: int) -> int:
        """ns for which the threads lived in a slice."""
        return sum(times[i] for times in self.kinds.values())

    def share(self, kinds: Collection[str], i: int) -> float:
        """Share of these kinds of the time in a slice; 0 if nobody lived in it."""
        whole = self.whole(i)
        return sum(self.kinds[kind][i] for kind in kinds if kind in self.kinds) / whole if whole else 0.0

    def decisive(self, weights: Mapping[str, float]) -> list[str]:
        """Kind that matters most in each slice: that with most time, by its weight (1 without one); "" if nobody
        lived."""
        found = []
        for i in range(self.number):
            times = {kind: of[i] * weights.get(kind, 1.0) for kind, of in self.kinds.items()}
            kind = max(times, key=lambda kind: (times[kind], kind), default="")
            found.append(kind if kind and self.whole(i) else "")
        return found

    def place(self, kind: str, first: int, last: int) -> SliceSpent | None:
        """Place where the threads did this for most of the time, in these slices."""
        times: Counter[tuple[tuple[str, ...], str]] = Counter()
        one: dict[tuple[tuple[str, ...], str], SliceSpent] = {}
        for member in self.members:
            shift = member.first - self.first
            for spent in member.spent:
                if spent.kind == kind and (spent.frames or spent.kernel):
                    key = spent.frames, spent.kernel
                    times[key] += sum(spent.times[max(first - shift, 0) : max(last + 1 - shift, 0)])
                    one.setdefault(key, spent)
        best = max(times, key=lambda key: (times[key], key), default=None)
        return one[best] if best and times[best] else None


def series_of(members: Iterable[ThreadSlices]) -> Series | None:
    """The times of these threads together; None if there are none, or their slices differ in length."""
    members = tuple(each for each in members if each.number)
    if len({each.length for each in members}) != 1:
        return None
    first = min(each.first for each in members)
    number = max(each.first + each.number for each in members) - first
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0] * number)
    for each in members:
        for spent in each.spent:
            of = sums[spent.kind]
            for i, time in enumerate(spent.times, each.first - first):
                of[i] += time
    return Series(members[0].length, first, {kind: tuple(times) for kind, times in sums.items()}, members)


def slices_by_thread(slices: Iterable[ThreadSlices]) -> dict[tuple[int, int], ThreadSlices]:
    """Slices by (pid, tid). A thread with several, as in captures that were merged, has none: it is not known when each
    began."""
    found: dict[tuple[int, int], ThreadSlices] = {}
    twice: set[tuple[int, int]] = set()
    for each in slices:
        key = each.pid, each.tid
        if key in found:
            twice.add(key)
        found[key] = each
    return {key: each for key, each in found.items() if key not in twice}


def phases_of(series: Series, weights: Mapping[str, float]) -> list[Phase]:
    """The phases of some threads, if there are several and few; else none. ``weights``: see `Series.decisive`.

    A phase has slices enough to know how much they scatter, and differs from the next one by more than that.
    """
    runs = _runs(series, series.decisive(weights))
    while (i := next((i for i in range(len(runs) - 1) if not _differ(series, runs[i], runs[i + 1])), -1)) >= 0:
        one, other = runs[i], runs[i + 1]
        kind = max(one, other, key=lambda run: run[2] - run[1])[0]
        runs[i : i + 2] = [(kind, one[1], other[2])]
    if not 1 < len(runs) <= thresholds.PHASES_TOLD:
        return []
    borders = [_border(series, one, other) for one, other in zip(runs, runs[1:], strict=False)]
    begin = (series.first + runs[0][1]) * series.length if runs[0][1] else series.begin
    end = (series.first + runs[-1][2] + 1) * series.length if runs[-1][2] + 1 < series.number else series.end
    begins, ends = [begin, *borders], [*borders, max(end, borders[-1])]
    return [
        Phase(kind, begins[i], ends[i], _mean(series, kind, first, last), series.place(kind, first, last))
        for i, (kind, first, last) in enumerate(runs)
    ]


_Run = tuple[str, int, int]
"""Kind, the first and the last of some slices."""


def _runs(series: Series, kinds: Sequence[str]) -> list[_Run]:
    """Slices of one kind in a row. A row too short for a phase belongs to its neighbour that is more like it."""
    runs: list[_Run] = []
    for kind, slices in groupby(range(len(kinds)), key=lambda i: kinds[i]):
        members = list(slices)
        runs.append((kind, members[0], members[-1]))
    # At the begin and at the end a single slice is a part of something that was not seen whole.
    runs = runs[_is_short(runs[0]) :] if len(runs) > 1 else runs
    runs = runs[: len(runs) - _is_short(runs[-1])] if len(runs) > 1 else runs
    while len(runs) > 1:
        i = min(range(len(runs)), key=lambda i: runs[i][2] - runs[i][1])
        _, first, last = runs[i]
        if not _is_short(runs[i]):
            break
        near = [j for j in (i - 1, i + 1) if 0 <= j < len(runs)]
        j = max(near, key=lambda j: _mean(series, runs[j][0], first, last))
        low, high = min(i, j), max(i, j)
        runs[low : high + 1] = [(runs[j][0], runs[low][1], runs[high][2])]
        runs = _joined(runs)
    return runs


def _is_short(run: _Run) -> bool:
    return run[2] - run[1] + 1 < thresholds.PHASE_SLICES


def _joined(runs: Sequence[_Run]) -> list[_Run]:
    """Neighbours of one kind as one."""
    found: list[_Run] = []
    for run in runs:
        if found and found[-1][0] == run[0]:
            found[-1] = (run[0], found[-1][1], run[2])
        else:
            found.append(run)
    return found


def _mean(series: Series, kind: str, first: int, last: int) -> float:
    whole = sum(series.whole(i) for i in range(first, last + 1))
    return sum(series.kinds.get(kind, (0,) * series.number)[first : last + 1]) / whole if whole else 0.0


def _differ(series: Series, one: _Run, other: _Run) -> bool:
    """Whether two rows of slices are different phases: what each mostly does, it does more by far, and by more than
    its slices scatter."""
    if one[0] == other[0] or not one[0] or not other[0]:
        return False
    before, after = range(one[1], one[2] + 1), range(other[1], other[2] + 1)
    # The slices on both sides of the border can be of both phases.
    before = before[:-1] if len(before) > thresholds.PHASE_SLICES else before
    after = after[1:] if len(after) > thresholds.PHASE_SLICES else after
    return _is_more(series, (one[0],), before, after) and _is_more(series, (other[0],), after, before)


def _is_more(series: Series, kinds: Collection[str], inside: Iterable[int], outside: Iterable[int]) -> bool:
    """Whether the share of these kinds is larger inside, by more than the slices scatter."""
    samples = [[series.share(kinds, i) for i in each if series.whole(i)] for each in (inside, outside)]
    free = sum(map(len, samples)) - len(samples)
    if not all(samples) or not free:
        return False
    more = fmean(samples[0]) - fmean(samples[1])
    scatter = sum(pvariance(each) * len(each) for each in samples) / free
    error = sqrt(scatter * sum(1 / len(each) for each in samples))
    return more >= thresholds.PHASE_CHANGE and more >= thresholds.PHASE_SCATTER * error


def _border(series: Series, one: _Run, other: _Run) -> int:
    """Time at which one phase ended and the other began: the two slices around it have the first one's part of each."""
    usual = _mean(series, one[0], one[1], max(one[2] - 1, one[1]))
    rest = series.share(one[:1], one[2]) + series.share(one[:1], other[1])
    part = min(rest / usual, 2.0) if usual else 1.0
    return round((series.first + one[2] + part) * series.length)


def only_in(series: Series, kinds: Collection[str]) -> tuple[int, int] | None:
    """The part of a trace, in ns since it began, in which the threads spent nearly all of their time of these kinds;
    None if that is not clearly a part of the time for which they lived."""
    times = [sum(of[i] for kind, of in series.kinds.items() if kind in kinds) for i in range(series.number)]
    enough, number = thresholds.HOLDS_IN * sum(times), len(times)
    ranges = ((last - first, first, last) for first in range(number) for last in range(first, number))
    found = next((each for each in sorted(ranges) if sum(times[each[1] : each[2] + 1]) >= enough), None)
    if not sum(times) or found is None or found[0] + 1 > thresholds.HOLDS_MOST * number:
        return None
    _, first, last = found
    inside = range(first, last + 1)
    outside = [i for i in range(number) if i not in inside]
    core = inside[1:-1] or inside
    if len(outside) < thresholds.PHASE_SLICES or not _is_more(series, kinds, core, outside):
        return None
    usual = fmean(series.share(kinds, i) for i in core)
    missing = [1 - min(series.share(kinds, i) / usual, 1.0) if last > first else 0.0 for i in (first, last)]
    begin = round((series.first + first + missing[0]) * series.length) if first else series.begin
    end = round((series.first + last + 1 - missing[1]) * series.length) if last < number - 1 else series.end
    return begin, end
