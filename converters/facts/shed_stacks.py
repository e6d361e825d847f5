"""Waits whose user stacks were left out by the budget (1 of 16 has its own): a sample of places, like one of time.

What such a thread waited for in the same state and function of the kernel is told of all of these waits in
proportion. Times and numbers stay exact; which place they are told of is as good as a sample.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from ..model.losses import NOT_TAKEN
from .wait_sums import Place, Sum, Sums

_Alike = tuple[str, str]
"""State, and function of the kernel."""


def with_shed_stacks(sums: Sums) -> Sums:
    """Sums without places of stacks that were not taken, where others of the thread tell of them."""
    changed = {}
    for thread, places in sums.items():
        if any(map(is_shed, places)):
            changed[thread] = _told(places)
    return sums | changed


def is_shed(place: Place) -> bool:
    """Whether the stacks of a place were not taken."""
    return place.site.frames[:1] == (NOT_TAKEN,)


def _told(places: dict[Place, Sum]) -> dict[Place, Sum]:
    alike: dict[_Alike, list[Place]] = defaultdict(list)
    for place in places:
        if not is_shed(place):
            alike[place.state, place.site.kernel].append(place)
    made: dict[Place, Sum] = {}
    for place, total in places.items():
        others = alike[place.state, place.site.kernel] if is_shed(place) else []
        for to, part in _parts(total, others, places) if others else [(place, total)]:
            made.setdefault(to, Sum()).add(part)
    return made


def _parts(total: Sum, to: Sequence[Place], places: dict[Place, Sum]) -> Iterator[tuple[Place, Sum]]:
    """The sum divided among these places by their number of waits. The shortest and the longest wait of all of them are
    told of each."""
    weights = [max(places[place].count, 1) for place in to]
    whole = sum(weights)
    for place, (begin, end) in zip(to, pairwise(accumulate(weights, initial=0)), strict=True):
        yield place, _part(total, begin, end, whole)


def _part(total: Sum, begin: int, end: int, whole: int) -> Sum:
    """The part from ``begin`` to ``end`` of ``whole``: all parts together are the sum, without what rounding takes."""

    def of(number: int) -> int:
        return number * end // whole - number * begin // whole

    return Sum(
        of(total.time),
        of(total.count),
        total.min,
        total.max,
        of(total.open_time),
        of(total.open_count),
        of(total.samples),
        {waker: of(time) for waker, time in total.wakers.items()},
        {number: of(time) for number, time in total.objects.items()} if total.objects else None,
        {key: of(time) for key, time in total.by_peers.items()} if total.by_peers else None,
        {giver: of(time) for giver, time in total.givers.items()} if total.givers else None,
    )
