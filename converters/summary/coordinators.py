"""Main threads that only wait until their workers have ended: what these do is what matters."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection

from .adding_up import Sums, Thread
from .frame_names import without_line
from .wait_kinds import CHILD, THREAD

_JOIN = re.compile(r"(.*[.:_])?(clock|timed|try)?join(_ex|_np)?|_*wait_for_tstate_lock", re.DOTALL)
"""Functions that wait for the end of a thread: ``pthread_join``, ``Thread.join``."""


def coordinators(sums: Sums, still: Collection[Thread], at_work: Collection[Thread]) -> frozenset[Thread]:
    """The main threads whose only wait, for all of the trace, is for the end of threads or processes, while threads of
    their process mostly wait, too. ``still``: threads that never moved; ``at_work``: these others, which did."""
    workers: dict[int, int] = defaultdict(int)
    for pid, tid in at_work:
        workers[pid] += pid != tid
    return frozenset(
        thread for thread in still if thread[0] == thread[1] and workers[thread[0]] and _waits_for_an_end(thread, sums)
    )


def _waits_for_an_end(thread: Thread, sums: Sums) -> bool:
    places = list(sums.get(thread, ()))
    if len(places) != 1:
        return False
    (place,) = places
    if place.kind == CHILD:
        return True
    return place.kind == THREAD and any(_JOIN.fullmatch(without_line(frame)) for frame in place.site.frames[-3:])
