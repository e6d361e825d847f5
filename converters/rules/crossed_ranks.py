"""Communicators that wait for each other: ranks that are missing in one are inside of the next one, in a circle."""

from __future__ import annotations

from collections.abc import Sequence

from ..model.collectives import Collectives


def circles(found: Sequence[Collectives]) -> list[tuple[Collectives, ...]]:
    """The shortest circles, no two of them with a communicator in common."""
    inside = [{rank.pid for rank, each in zip(of.ranks, of.standing, strict=False) if each.what} for of in found]
    outside = [{each.pid for each in of.standing if not each.what} for of in found]
    nexts = [
        [other for other in range(len(found)) if other != one and outside[one] & inside[other]]
        for one in range(len(found))
    ]
    ways = filter(None, (_way_back(nexts, first) for first in range(len(found))))
    told: list[tuple[Collectives, ...]] = []
    used: set[int] = set()
    for way in sorted(ways, key=lambda way: (len(way), way)):
        if used.isdisjoint(way):
            used.update(way)
            told.append(tuple(found[each] for each in way))
    return told


def _way_back(nexts: Sequence[Sequence[int]], first: int) -> tuple[int, ...]:
    """The shortest way over others that leads back to the first one; () if there is none."""
    before: dict[int, int] = {}
    pending = [first]
    for one in pending:
        for other in nexts[one]:
            if other == first:
                way = [one]
                while way[-1] != first:
                    way.append(before[way[-1]])
                return tuple(reversed(way))
            if other not in before:
                before[other] = one
                pending.append(other)
    return ()
