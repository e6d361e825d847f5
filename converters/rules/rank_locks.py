"""Waits of ranks for a lock on a file that another rank of their job has: they wait for that rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.file_locks import CALLS, is_for_file
from ..facts.identity import kernel_id
from ..facts.jobs import Job
from ..facts.wait_functions import LOCK_OF_FILE
from ..facts.wait_kinds import LOCK
from ..facts.wait_sums import Place

_Times = Counter[tuple[str, ...]]
"""Time by the frames of a place in which a lock is asked for again and again."""


class RankLocks:
    """Locks on files for which ranks of a job wait, and what shows that another rank has them."""

    def __init__(self, facts: Facts, job: Job) -> None:
        self._facts, self._job = facts, job
        self._polled = _polled(facts, job)

    def part(self, pid: int, place: Place) -> float:
        """Part of the waits of a rank in this place for which another rank has the lock, from 0 to 1."""
        if place.kind != LOCK:
            return 0.0
        seen = self._seen(kernel_id(pid)) if is_for_file(place.wait) else 0.0
        if seen is None:
            return float(_is_polled(place) and (pid, place.site.frames) in self._polled)
        return seen

    def _seen(self, pid: int) -> float | None:
        """Part of the looks at which this process was seen to wait for an owner that is another rank; None if there are
        too few."""
        others = {kernel_id(each) for each in self._job.pids} - {pid}
        looks = [(each.seen, each.owner_pid in others) for each in self._facts.file_locks if each.pid == pid]
        whole = sum(seen for seen, _ in looks)
        return sum(seen for seen, is_other in looks if is_other) / whole if whole >= thresholds.LOOKS else None


def _polled(facts: Facts, job: Job) -> Collection[tuple[int, tuple[str, ...]]]:
    """Ranks that ask for a lock in one place for most of their time, and the place: if these are all ranks but one,
    which does not, and runs. Without the kernel's reports of requests that it refused, nothing else shows an owner."""
    asked = {pid: _asked(facts, pid) for pid in job.pids}
    walls = {pid: facts.threads[pid, pid].wall for pid in job.pids if (pid, pid) in facts.threads}
    for frames in set().union(*asked.values()):
        ask = {pid for pid, wall in walls.items() if asked[pid][frames] >= thresholds.DOES_MOSTLY * wall > 0}
        rest = job.pids - ask
        if len(rest) == 1 and len(job.pids) >= thresholds.ALIKE and all(_only_runs(facts, pid, asked) for pid in rest):
            return {(pid, frames) for pid in ask}
    return ()


def _only_runs(facts: Facts, pid: int, asked: dict[int, _Times]) -> bool:
    times = facts.threads.get((pid, pid))
    if times is None or asked[pid].total() >= thresholds.SIGNIFICANT * times.wall:
        return False
    return times.on_cpu + times.runnable >= thresholds.DOES_MOSTLY * times.wall


def _asked(facts: Facts, pid: int) -> _Times:
    found: _Times = Counter()
    for place, total in facts.waits_of((pid, pid)).items():
        if _is_polled(place):
            found[place.site.frames] += total.time
    return found


def _is_polled(place: Place) -> bool:
    return place.wait.lock == LOCK_OF_FILE and place.wait.call not in CALLS
