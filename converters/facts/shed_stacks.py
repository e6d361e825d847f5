"""Waits whose user stacks were left out by the budget (1 of 16 has its own): a sample of places, like one of time.

What such a thread waited for in the same state and function of the kernel is told of all of these waits in
proportion: times by the times of those with stacks, numbers by their numbers. Sums stay exact; which place they are
told of is as good as a sample.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate

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
    """The sum divided among these places. The longest wait is told of the place with most time: it is no other's."""
    times, counts = _Weights(places[place].time for place in to), _Weights(places[place].count for place in to)
    most = max(range(len(to)), key=lambda i: places[to[i]].time)
    for i, place in enumerate(to):
        longest = total.max if i == most else min(total.max, places[place].max)
        yield place, _part(total, longest, partial(times.part, i), partial(counts.part, i))


class _Weights:
    """Divides numbers in proportion to others: all parts together are the number."""

    def __init__(self, of: Iterable[int]) -> None:
        self._edges = list(accumulate((max(each, 1) for each in of), initial=0))

    def part(self, i: int, number: int) -> int:
        begin, end, whole = self._edges[i], self._edges[i + 1], self._edges[-1]
        return number * end // whole - number * begin // whole


def _part(total: Sum, longest: int, time: Callable[[int], int], number: Callable[[int], int]) -> Sum:
    return Sum(
        time(total.time),
        number(total.count),
        total.min,
        longest,
        time(total.open_time),
        number(total.open_count),
        number(total.samples),
        {waker: time(each) for waker, each in total.wakers.items()},
        {key: time(each) for key, each in total.objects.items()} if total.objects else None,
        {key: time(each) for key, each in total.by_peers.items()} if total.by_peers else None,
        {giver: time(each) for giver, each in total.givers.items()} if total.givers else None,
    )
