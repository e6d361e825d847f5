"""Meetings: the calls of one communicator's collectives, joined over its ranks by their order.

All ranks of a communicator call the same collectives in the same order: that is what the libraries ask for. So the
n-th call of one rank and the n-th call of another one are the same meeting. Where a trace begins later than the
communicator, ranks may be some calls apart: they are joined so that the operations are the same, and no operation was
done on one rank before another one began it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from ..facts import thresholds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Times = NDArray[np.int64]

OPEN = -1
"""End of a call that had not ended, and times of a rank that has not come."""


class Member(NamedTuple):
    """A rank as its process sees it."""

    pid: int
    comm: int
    """Address of the communicator in this process."""
    number: int = 0
    """Number of calls that made or ended a communicator at this address before: memory is used again."""


@dataclass(frozen=True)
class Calls:
    """Collectives of one member, in order. Times are in ns from the beginning of the trace."""

    member: Member
    began: Times
    ended: Times
    """`OPEN` for a call that had not ended."""
    what: NDArray[np.int64]
    """One number for each combination of operation, count, type and root."""
    done: Times
    """Times when the rank knew that the operation was done; `OPEN`: not known. The end of the call, or of the wait for
    the stream into which it was put."""
    for_all: NDArray[np.bool_]
    """Whether such an operation is done on a rank only when all have begun it. One with a root need not be: the root
    of a broadcast has sent what others will ask for."""
    waits: Times | None = None
    """Times when the rank begins to wait: later than the call, where that only begins the operation; `OPEN`: it is not
    known to wait. None: all calls wait themselves."""

    def without(self) -> Calls:
        """The member without calls."""
        none = self.began[:0]
        return Calls(self.member, none, none, none, none, self.for_all[:0])


@dataclass(frozen=True)
class Meetings:
    """Meetings of one communicator: a row for each, a column for each member."""

    members: tuple[Member, ...]
    began: Times
    """Times when each one came; `OPEN`: it did not, or before the trace began."""
    ended: Times
    what: NDArray[np.int64]
    """Numbers of what each one calls, see `Calls`; `OPEN`: nothing."""
    differs: NDArray[np.bool_]
    """Whether members called something else in it."""

    def begin(self, column: int) -> int:
        """Number of the first meeting to which this member came; 0 if it came to none."""
        return int((self.began[:, column] != OPEN).argmax()) if len(self.began) else 0

    def fails(self) -> NDArray[np.bool_]:
        """Whether each meeting lacks ranks, or ranks call different operations in it. Ranks whose calls began before
        the trace lack the first meetings: these do not fail, unless all do."""
        fails: NDArray[np.bool_] = ~(self.began != OPEN).all(axis=1) | self.differs
        if not fails.all():
            fails[: int(fails.argmin())] = False
        return fails

    def spread(self) -> Times:
        """ns from the first one who came to the last one, of meetings to which all came; `OPEN` of others."""
        import numpy as np

        whole = (self.began != OPEN).all(axis=1)
        return np.where(whole, self.began.max(axis=1) - self.began.min(axis=1), OPEN)

    def first(self) -> NDArray[np.int64]:
        """Number of what is called in each meeting, by the first member in their order that came."""
        import numpy as np

        found: NDArray[np.int64] = self.what[np.arange(len(self.what)), (self.what != OPEN).argmax(axis=1)]
        return found

    def last(self) -> NDArray[np.int64]:
        """Column of the member who came last to each meeting; `OPEN` unless all came."""
        import numpy as np

        whole = (self.began != OPEN).all(axis=1)
        return np.where(whole, self.began.argmax(axis=1), OPEN)


def meetings(calls: Sequence[Calls], *, from_start: bool, firsts: Sequence[int] | None = None) -> Meetings:
    """Joins the calls of the members of one communicator. ``from_start``: the trace has seen how it was made, and so
    all calls of all members. ``firsts``: see `Communicator.firsts`."""
    import numpy as np

    shifts = [0] * len(calls) if from_start else [shift or 0 for shift in _placed(calls, firsts)]
    begin = min(shifts)
    rows = max(shift - begin + len(each.began) for shift, each in zip(shifts, calls, strict=True))
    began = np.full((rows, len(calls)), OPEN, np.int64)
    ended = np.full((rows, len(calls)), OPEN, np.int64)
    what = np.full((rows, len(calls)), OPEN, np.int64)
    for column, (shift, each) in enumerate(zip(shifts, calls, strict=True)):
        at = slice(shift - begin, shift - begin + len(each.began))
        began[at, column], ended[at, column], what[at, column] = each.began, each.ended, each.what
    came = what != OPEN
    told = what[np.arange(rows), came.argmax(axis=1)]
    differs = (came & (what != told[:, None])).any(axis=1)
    return Meetings(tuple(each.member for each in calls), began, ended, what, differs)


def aligned(calls: Sequence[Calls], firsts: Sequence[int] | None = None) -> bool:
    """Whether the calls of all members tell which of them are the same meetings. ``firsts``: see `meetings`."""
    return None not in _placed(calls, firsts)


def _placed(calls: Sequence[Calls], firsts: Sequence[int] | None) -> list[int | None]:
    """Number of calls that each member begins after the one with most calls; None: nothing tells. 0 for a member
    without calls."""
    most = max(range(len(calls)), key=lambda place: len(calls[place].began))
    found: list[int | None] = [None if len(each.began) else 0 for each in calls]
    found[most], edge = 0, [(most, 0)]
    while edge:
        at, begin = edge.pop()
        for place, each in enumerate(calls):
            if found[place] is None:
                counted = firsts[place] - firsts[at] if firsts else None
                shift = _aligned(calls[at], each, counted)
                if shift is not None:
                    found[place] = begin + shift
                    edge.append((place, begin + shift))
    return found


class Fit(Enum):
    """Whether calls can be those of two ranks of one communicator: enough of them, with the same operations in the same
    order, and none was done on a rank before the other one began it."""

    NOT = 0
    ONE_WAY = 1
    SEVERAL_WAYS = 2
    """Calls that can, but nothing tells which of them are the same meeting."""


def compared(one: Calls, other: Calls) -> Fit:
    """Whether the calls of two endpoints fit."""
    found = len(_shifts(one, other))
    return Fit.NOT if not found else Fit.ONE_WAY if found == 1 else Fit.SEVERAL_WAYS


def _aligned(first: Calls, other: Calls, counted: int | None = None) -> int | None:
    """Number of calls that ``other`` begins after ``first``; None if none fits, or if several do. ``counted``: what the
    ranks' memory says."""
    fits = _shifts(first, other)
    if counted in fits:
        return counted
    return fits[0] if len(fits) == 1 else None


def _shifts(first: Calls, other: Calls) -> list[int]:
    """Numbers of calls that ``other`` may begin after ``first``. That calls are close in time would be no evidence: a
    rank may be late by more than half of a step."""
    fits: list[int] = []
    for shift in _begins(first, other):
        begin, end = max(shift, 0), min(len(first.began), shift + len(other.began))
        if end - begin < thresholds.CALLS_FIT:
            continue
        mine, theirs = slice(begin, end), slice(begin - shift, end - shift)
        begun, done, what, bound = first.began[mine], first.done[mine], first.what[mine], first.for_all[mine]
        if _differ(what, other.what[theirs], (done != OPEN) & (other.done[theirs] != OPEN)):
            continue
        early = (done != OPEN) & (done < other.began[theirs])
        early |= (other.done[theirs] != OPEN) & (other.done[theirs] < begun)
        if not (early & bound).any():
            fits.append(shift)
    return fits


def _begins(first: Calls, other: Calls) -> list[int]:
    """Shifts of which the first calls fit: nearly all others are out, without a look at all calls."""
    earlier = _places(first, other)  # the other one begins at a later call of the first one
    later = [-shift for shift in _places(other, first) if shift]
    return sorted([*later, *earlier])


def _places(long: Calls, short: Calls) -> list[int]:
    """Places in ``long`` where ``short`` may begin, up to the most that ranks are apart."""
    import numpy as np

    runs = thresholds.CALLS_FIT - 1  # the last call may be another one
    number = min(len(long.what) - runs, thresholds.RANKS_APART + 1)
    if number < 1 or len(short.what) <= runs:
        return []
    fits = np.ones(number, bool)
    for at in range(runs):
        place = slice(at, at + number)
        begun, done = short.began[at], short.done[at]
        fits &= long.what[place] == short.what[at]
        early = (long.done[place] != OPEN) & (long.done[place] < begun)
        if done != OPEN:
            early |= done < long.began[place]
        fits &= ~(early & long.for_all[place])
    found: list[int] = np.flatnonzero(fits).tolist()
    return found


def _differ(one: NDArray[np.int64], other: NDArray[np.int64], done: NDArray[np.bool_]) -> bool:
    """Whether operations differ. Ranks that call different ones stand still: the last call, which is never done, may
    be another one."""
    differ = one != other
    return bool(differ[:-1].any() or (differ[-1] and done[-1]))


class Lateness(NamedTuple):
    """Lateness of members, in ns after the median of all members."""

    median: NDArray[np.float64]
    """One for each member, of meetings to which all came."""
    deviation: float
    """MAD of these medians."""
    last: NDArray[np.int64]
    """Number of meetings to which each member came last."""
    number: int
    """Number of meetings to which all came."""


def lateness(of: Meetings) -> Lateness:
    """Compares arrivals in the meetings to which all came; zeros for none."""
    import numpy as np

    whole = (of.began != OPEN).all(axis=1)
    began = of.began[whole]
    members = len(of.members)
    if not len(began):
        return Lateness(np.zeros(members), 0.0, np.zeros(members, np.int64), 0)
    late = began - np.median(began, axis=1)[:, None]
    median = np.median(late, axis=0)
    deviation = float(np.median(np.abs(median - np.median(median))))
    return Lateness(median, deviation, np.bincount(began.argmax(axis=1), minlength=members), len(began))
