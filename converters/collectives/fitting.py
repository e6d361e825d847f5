"""Puts endpoints together that may be one communicator, by their calls only.

Two endpoints fit if they are of different processes and their calls can be those of two ranks. A communicator is a set
of endpoints that fit pairwise. An endpoint that fits two others that do not fit each other may be of either's
communicator: nothing tells, and it is of none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..facts import thresholds
from .meetings import OPEN, Calls, Fit, compared

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_Run = tuple[int, ...]


class Known(NamedTuple):
    """Knowledge of an endpoint: its rank, and what is the same for all ranks of its communicator."""

    rank: int
    size: int
    """Number of ranks; -1: it is not known."""
    name: str = ""
    """Name that the library gives it; "": none is known."""


class Fitting(NamedTuple):
    """The result. Places are those in the list of calls."""

    groups: list[list[int]]
    """Groups of places, each place in one of them."""
    left_out: frozenset[int]
    """Places that were not compared with others: there were too many. Each is alone."""
    unsure: dict[int, int]
    """Number of places that fit all of a group and are not in it, by the first place of the group: they fit others,
    too, or it is not known which of their calls are the same meetings."""


def fitting(
    calls: Sequence[Calls], are_apart: Callable[[int, int], bool], numbers: Sequence[Known | None] = ()
) -> Fitting:
    """Puts endpoints together. ``are_apart``: whether two processes are known to be of different jobs. ``numbers``: of
    each endpoint, as far as they are known."""
    import numpy as np

    candidates = _Candidates(calls, are_apart, numbers)
    places = sorted({place for pair in candidates.pairs for place in pair})  # all others are alone
    row_of = {place: row for row, place in enumerate(places)}
    may, does = np.eye(len(places), dtype=bool), np.eye(len(places), dtype=bool)
    for one, other in candidates.pairs:
        found, pair = compared(calls[one], calls[other]), (row_of[one], row_of[other])
        may[pair] = may[pair[::-1]] = found is not Fit.NOT
        does[pair] = does[pair[::-1]] = found is Fit.ONE_WAY
    groups: dict[bytes | int, list[int]] = defaultdict(list)
    for row in range(len(places)):
        around = np.flatnonzero(may[row])
        is_one = may[np.ix_(around, around)].all()
        groups[may[row].tobytes() if is_one else row].append(row)
    parts = [[places[row] for row in part] for group in groups.values() for part in _connected(group, does)]
    unsure = {part[0]: int(may[row_of[part[0]]].sum()) - len(part) for part in parts if len(part) > 1}
    parts += [[place] for place in range(len(calls)) if place not in row_of]
    return Fitting(sorted(parts), candidates.left_out, unsure)


def _connected(group: Sequence[int], does: NDArray[np.bool_]) -> list[list[int]]:
    """Parts of a group of rows: what fits in several ways is no evidence that two belong together."""
    left, parts = list(group), []
    while left:
        part, edge = [], [left.pop(0)]
        while edge:
            each = edge.pop()
            part.append(each)
            edge += [other for other in left if does[each, other]]
            left = [other for other in left if not does[each, other]]
        parts.append(sorted(part))
    return parts


class _Candidates:
    """Pairs of places that are worth a comparison: of processes that may be of one job, with the same operations where
    the later one begins, and which are not done before the other one begins. Those with most calls first."""

    def __init__(
        self, calls: Sequence[Calls], are_apart: Callable[[int, int], bool], numbers: Sequence[Known | None]
    ) -> None:
        self._calls, self._are_apart, self._numbers = calls, are_apart, numbers or [None] * len(calls)
        self._apart: dict[tuple[int, int], bool] = {}
        self._spans = [_span(each) for each in calls]
        self.pairs: list[tuple[int, int]] = []
        most = sorted(range(len(calls)), key=lambda place: -len(calls[place].began))
        left_out = set(most[thresholds.COMMUNICATORS_FIT :])
        beginning: dict[_Run, list[int]] = defaultdict(list)
        having: dict[_Run, list[int]] = defaultdict(list)
        for place in most[: thresholds.COMMUNICATORS_FIT]:
            if not (runs := _runs(calls[place])):
                continue
            others = set(having[runs[0]]).union(*(beginning[run] for run in set(runs)))
            found = [(place, other) for other in sorted(others) if self._may_fit(place, other)]
            if len(self.pairs) + len(found) > thresholds.PAIRS_FIT:
                left_out.add(place)
                continue
            self.pairs += found
            beginning[runs[0]].append(place)
            for run in set(runs):
                having[run].append(place)
        self.left_out = frozenset(left_out)

    def _may_fit(self, one: int, other: int) -> bool:
        spans, pids = self._spans, (self._calls[one].member.pid, self._calls[other].member.pid)
        if pids[0] == pids[1] or spans[one][0] > spans[other][1] or spans[other][0] > spans[one][1]:
            return False
        mine, theirs = self._numbers[one], self._numbers[other]
        if mine and theirs and (mine.rank == theirs.rank or mine[1:] != theirs[1:]):
            return False
        if pids not in self._apart:
            self._apart[pids] = self._are_apart(*pids)
        return not self._apart[pids]


def _runs(calls: Calls) -> list[_Run]:
    """Operations of calls that follow each other, where those of another endpoint may begin; [] of too few calls."""
    length = thresholds.CALLS_FIT - 1  # the last call may be another one
    head = calls.what[: thresholds.RANKS_APART + length].tolist()
    return [tuple(head[at : at + length]) for at in range(len(head) - length + 1)] if len(head) > length else []


def _span(calls: Calls) -> tuple[float, float]:
    """Begin of the first call, and the time when the last one was done, without end if that is not known, or need not
    be later than the begin of another rank's."""
    if not len(calls.began):
        return 0.0, float("inf")
    bounded = calls.for_all.all() and (calls.done != OPEN).all()
    return (float(calls.began.min()), float(calls.done.max())) if bounded else (float("-inf"), float("inf"))
