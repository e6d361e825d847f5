"""Somebody has a lock for most of the time for which others wait for it, as the lock itself tells."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.locks import ranked
from ..facts.wait_kinds import LOCK
from ..model.locks import GIL as OF_PYTHON
from ..model.locks import WAKER, LockThread, LockTimes
from ..model.waits_for import THREAD, Node
from .doing import Doing, Doings
from .verdict import GIL, Verdict

RULE = "holder"


class Holder(NamedTuple):
    """The detail of such a verdict. Times in ns; names are unescaped (hostile)."""

    lock: LockTimes
    wall: int
    """Wall time of the threads that wait for it."""
    waiters: int
    held: int
    """Part of the waits while the lock is had by the thread, or by the process."""
    process: str
    pid: int
    thread: LockThread | None
    """Thread that has the lock, of the only process that waits; None: only the process is told."""
    is_traced: bool
    doing: Doing | None
    """Work of those who have it; None if nothing is known of it."""


def find(facts: Facts) -> list[Verdict]:
    """Finds the holder of the lock that is waited for most, if it is contended and that matters."""
    if not facts.recorded:
        return []
    profile = facts.recorded.profile
    lock = next((each for each in ranked(profile.locks) if not (each.kind == OF_PYTHON and facts.gil_matters)), None)
    if not lock or not lock.is_contention:
        return []
    walls = {(times.pid, times.tid): times.wall for times in profile.threads}
    wall = sum(walls.get((thread.pid, thread.tid), 0) for thread in lock.waiters)
    times: Counter[tuple[str, int]] = Counter()
    for holder in lock.holders:
        if holder.source != WAKER:
            times[holder.process, holder.pid] += holder.time
    (process, pid), most = max(times.items(), key=lambda entry: (entry[1], entry[0]), default=(("", 0), 0))
    enough = lock.time >= thresholds.HELD_MATTERS * wall and most >= thresholds.HELD_MOSTLY * lock.time
    if not wall or not enough:
        return []
    threads = [of for of in lock.holders if of.pid == pid and of.source != WAKER]
    having = [(of.pid, of.tid) for of in threads if of.time >= thresholds.HOLDER_SHARE * most]
    thread = None
    if {each.pid for each in lock.waiters} == {pid} and threads[0].time >= thresholds.HELD_MOSTLY * lock.time:
        thread, most, having = threads[0], threads[0].time, having[:1]
    doing = Doings(facts.recorded.graph, profile).of({Node(THREAD, *each) for each in having})
    waiters = len(lock.waiters) + lock.more_waiters
    detail = Holder(lock, wall, waiters, most, process, pid, thread, any(of == pid for of, _ in walls), doing)
    kind = GIL if lock.kind == OF_PYTHON else LOCK
    return [Verdict(RULE, kind, most, 1, frozenset(each.pid for each in lock.waiters), detail=detail)]
