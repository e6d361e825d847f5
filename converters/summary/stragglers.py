"""Those who come last, and for whom the others wait: at a barrier, or as the slowest rank of a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..facts.wait_kinds import CHILD, HALTED, HELD, LOCK, PEER, SLEEP, THREAD
from ..facts.wait_sums import Sums, Thread
from ..model import ThreadTimes
from .finding import CPU, Finding

CAUSE = 0.2
"""A cause of waits spends at least this share of its time on work of its own."""
_MUCH = 2
"""And this many times the share that the longest waiter spends."""
_SELDOM = 3
"""At a barrier it waits at most 1/this of the longest waiter's share itself."""


def own_kinds(effect: str) -> tuple[str, ...]:
    """What may keep a waited-for thread busy."""
    if effect == SLEEP:
        return (CPU,)
    own = (CPU, SLEEP, LOCK, HELD, HALTED)
    # Others of the same process may wait for something outside of it.
    return (*own, PEER, CHILD) if effect == THREAD else own


def last_of_all(
    effect: Finding, alike: Sequence[Thread], threads: Mapping[Thread, ThreadTimes], sums: Sums
) -> list[Thread]:
    """Threads with much more time of their own than the longest waiter. Ranks of a job wait for each other, whichever
    thread delivers the message: those ``alike``, main threads of similar processes. At a barrier of threads these are
    among the threads of ``effect``: the last one waits there, too, while the others wake, but seldom."""
    victim = effect.threads[0]
    asked = dict.fromkeys(alike)
    if effect.kind == THREAD:
        much = _share_in(effect, victim, threads, sums)
        asked |= {each: None for each in effect.threads if _share_in(effect, each, threads, sums) * _SELDOM <= much}
    kinds = own_kinds(PEER)
    least = max(CAUSE, _MUCH * _own_share(victim, kinds, threads, sums))
    return [each for each in asked if _own_share(each, kinds, threads, sums) > least]


def _share_in(effect: Finding, thread: Thread, threads: Mapping[Thread, ThreadTimes], sums: Sums) -> float:
    """Share of its time spent in the places of ``effect``."""
    wall, of = threads[thread].wall, sums[thread]
    return sum(of[place].time for place in effect.places if place in of) / wall if wall else 0


def _own_share(thread: Thread, kinds: tuple[str, ...], threads: Mapping[Thread, ThreadTimes], sums: Sums) -> float:
    """Share of its time spent running or in these kinds of waits."""
    times = threads[thread]
    waits = sum(total.time for place, total in sums.get(thread, {}).items() if place.kind in kinds)
    return (times.on_cpu + waits) / times.wall if times.wall else 0
