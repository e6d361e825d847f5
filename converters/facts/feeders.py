"""Places that give threads work: those that end their waits for it, again and again.

What ends one wait of a thread may as well be what ends the thread, or its process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable

from . import thresholds
from .facts import Facts
from .wait_kinds import EVENTS, PEER, THREAD, WORK
from .wait_sums import Sum, Thread

Names = tuple[str, ...]
"""Functions of a place, as in `Site.frames`."""

OTHERS: Names = ("[others]",)
"""Stands for what is no place of a thread, and also ends waits: interrupts, and what is not known."""
_ENDED_BY_WORK = frozenset((THREAD, PEER, EVENTS, WORK))
"""Kinds of waits that end when there is work: not those for a lock."""


def feeders(facts: Facts, threads: Iterable[Thread], members: Container[int]) -> Counter[Names]:
    """Time of these threads' waits for work, by the place that ended them; by () of those that may have been ended by
    what ends the thread, and by `OTHERS` of those that no place has ended. ``members``: the kernel's ids of the threads
    of their pool. One of these that wakes the next one passes work on."""
    found: Counter[Names] = Counter()
    for thread in threads:
        for place, total in facts.waits_of(thread).items():
            if total.givers and place.kind in _ENDED_BY_WORK:
                found += _often(total, facts.threads[thread].count, members)
    return found


def _often(total: Sum, threads: int, members: Container[int]) -> Counter[Names]:
    """Time of waits by the places that have ended several of each thread; by () of the others. Who has ended no more
    time than the longest wait takes may have ended that one only."""
    found: Counter[Names] = Counter()
    givers = total.givers or {}
    for giver, time in givers.items():
        if giver.tid not in members:
            found[giver.frames] += time
    waits = total.count - total.open_count
    alone = [frames for frames, time in found.items() if time <= total.max * threads]
    if alone and total.open_time < total.max:
        found[()] = found.pop(max(alone, key=lambda frames: (found[frames], frames)))
        waits -= threads
    if waits < thresholds.FED_OFTEN * threads:
        return Counter({(): found.total()})
    rest = total.time - total.open_time - sum(givers.values())
    return found + Counter({OTHERS: max(rest, 0)})
