"""Threads that start processes, and wait for them in calls that could wait for anything: ``epoll_wait`` of a web
server that has started a script, ``select`` of a program that looks for the end of its workers from time to time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from ..model import ThreadTimes
from . import thresholds
from .wait_functions import STARTED
from .wait_kinds import CHILD, CORE, EVENTS, TOLD_BY_OTHERS
from .wait_sums import Place, Sum, Sums, Thread

Started = Mapping[Thread, frozenset[int]]
"""The processes that threads have started during the trace."""


def started_processes(threads: Mapping[Thread, ThreadTimes]) -> Started:
    """Processes by the threads that started them, as far as these were traced."""
    by_id = {tid: (pid, tid) for pid, tid in threads}
    found: dict[Thread, set[int]] = defaultdict(set)
    for (pid, tid), times in threads.items():
        starter = by_id.get(times.creator) if pid == tid and times.creator > 0 else None
        if starter and starter[0] != pid:
            found[starter].add(pid)
    return {thread: frozenset(pids) for thread, pids in found.items()}


def all_started(by: Iterable[Thread], started: Started) -> frozenset[int]:
    """Processes that these threads have started, with all that those have started in turn."""
    below: dict[int, set[int]] = defaultdict(set)
    for (pid, _), pids in started.items():
        below[pid] |= pids
    found: set[int] = set()
    pending = [pid for thread in by for pid in started.get(thread, ())]
    while pending:
        pid = pending.pop()
        if pid not in found:
            found.add(pid)
            pending += below[pid]
    return frozenset(found)


def with_waits_for_started(sums: Sums, threads: Mapping[Thread, ThreadTimes], started: Started) -> Sums:
    """Waits for events of threads whose processes are at work for most of that time are waits for these."""
    changed = {}
    for thread, pids in started.items():
        places = sums.get(thread, {})
        waits = sum(total.time for place, total in places.items() if place.kind == EVENTS)
        lives = (threads[pid, pid].wall for pid in pids if _is_at_work(threads[pid, pid], sums.get((pid, pid), {})))
        if 0 < waits * thresholds.MOSTLY <= sum(lives):
            changed[thread] = {_for_started(place): total for place, total in places.items()}
    return sums | changed


def _for_started(place: Place) -> Place:
    if place.kind != EVENTS:
        return place
    return place.as_wait(place.wait._replace(kind=CHILD, job=STARTED))


def _is_at_work(times: ThreadTimes, places: Mapping[Place, Sum]) -> bool:
    """Whether a process has ended, or does something other than to wait for others: a server's workers may have
    nothing to do."""
    waits = sum(total.time for place, total in places.items() if place.kind in TOLD_BY_OTHERS)
    own = sum(total.time for place, total in places.items() if place.kind not in (*TOLD_BY_OTHERS, CORE))
    return times.exited or times.on_cpu + times.runnable + own >= waits
