"""Main threads that only wait until their workers have ended: what these do is what matters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from .wait_kinds import CHILD
from .wait_sums import Place, Sums, Thread


def coordinators(
    sums: Sums, still: Collection[Thread], at_work: Collection[Thread], quiet: Mapping[Thread, Collection[Place]]
) -> frozenset[Thread]:
    """The main threads that only wait for the end of threads or processes, while threads of their process mostly wait,
    too. ``still``: threads that never moved; ``at_work``: these others, which did; ``quiet``: threads that spend nearly
    all of their time in these places, also if the trace saw how they began, or how the wait ended."""
    workers: dict[int, int] = defaultdict(int)
    for pid, tid in at_work:
        workers[pid] += pid != tid
    found = {thread for thread in still if _waits_for_an_end(thread, sums)}
    for thread, places in quiet.items():
        if any(place.wait.join and sums[thread][place].count <= workers[thread[0]] for place in places):
            found.add(thread)
    return frozenset(thread for thread in found if thread[0] == thread[1] and workers[thread[0]])


def _waits_for_an_end(thread: Thread, sums: Sums) -> bool:
    places = list(sums.get(thread, ()))
    if len(places) != 1:
        return False
    (place,) = places
    return place.kind == CHILD or place.wait.join
