"""Main threads that only wait until their workers have ended: what these do is what matters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from . import thresholds
from .wait_kinds import CHILD, SLEEP
from .wait_sums import Place, Sum, Sums, Thread


def coordinators(
    sums: Sums, still: Collection[Thread], at_work: Collection[Thread], quiet: Mapping[Thread, Collection[Place]]
) -> frozenset[Thread]:
    """The main threads that only wait for the end of threads or processes, or only sleep for long between two looks at
    them, while threads of their process mostly wait, too. ``still``: threads that never moved; ``at_work``: these
    others, which did; ``quiet``: threads that spend nearly all of their time in these places, also if the trace saw how
    they began, or how the wait ended."""
    workers: dict[int, int] = defaultdict(int)
    wait_for_something: set[int] = set()
    for pid, tid in at_work:
        workers[pid] += pid != tid
        if pid != tid and not mostly_sleeps_itself(sums.get((pid, tid), {})):
            wait_for_something.add(pid)
    found = {thread for thread in still if _waits_for_an_end(thread, sums)}
    for thread, places in quiet.items():
        joins = any(place.wait.join and sums[thread][place].count <= workers[thread[0]] for place in places)
        if joins or (
            thread[0] in wait_for_something and any(_sleeps_itself(place, sums[thread][place]) for place in places)
        ):
            found.add(thread)
    return frozenset(thread for thread in found if thread[0] == thread[1] and workers[thread[0]])


def _waits_for_an_end(thread: Thread, sums: Sums) -> bool:
    places = list(sums.get(thread, ()))
    if len(places) != 1:
        return False
    (place,) = places
    return place.kind == CHILD or place.wait.join


def mostly_sleeps_itself(places: Mapping[Place, Sum]) -> bool:
    """Whether the longest of a thread's waits is one in which the program itself, and no library, sleeps."""
    longest = max(places, key=lambda place: (places[place].time, place), default=None)
    return longest is not None and longest.kind == SLEEP and longest.is_own_call


def _sleeps_itself(place: Place, total: Sum) -> bool:
    """Whether a function of the program itself sleeps there, for long: what a library sleeps for is what holds the
    thread up."""
    if place.kind != SLEEP or total.time <= thresholds.SHORT_SLEEP * total.count:
        return False
    return place.is_own_call
