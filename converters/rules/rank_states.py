"""States of the ranks of a job: how much of its time each runs, waits for a core, for the others, or for what else."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.identity import kernel_id
from ..facts.jobs import Job
from ..facts.wait_functions import COLLECTIVE
from ..facts.wait_kinds import CORE, TOLD_BY_OTHERS
from ..facts.wait_sums import Place, Sum, Thread
from ..model.waits_for import THREAD as NODE
from .finding import Finding
from .rank_locks import RankLocks
from .verdict import GPU, kind_of

RUNNING, RUNNABLE = "running", "runnable"
"""States beside the kinds of verdicts on waits."""
FOR_OTHERS = (COLLECTIVE, GPU)
"""Kinds of waits in which the work of other ranks shows: the operations of NCCL run on the GPU."""
_SOMEBODY = ((0, 0),)
Ends = dict[tuple[int, int], Counter[int]]
"""Time of waits by who waited (the kernel's pid and tid), and the rank (pid) whose thread ended them at last."""


@dataclass(frozen=True)
class RankTimes:
    """Times of a rank, of the threads that stand for it. In ns."""

    wall: int
    kinds: Mapping[str, int]
    """Time by `RUNNING`, `RUNNABLE`, or the kind of a verdict on the wait; `COLLECTIVE`: all waits for other ranks."""
    places: Mapping[tuple[str, tuple[str, ...]], int] = field(default_factory=dict)
    """Time by kind and frames of the place."""
    ended_by: Mapping[int, int] = field(default_factory=dict)
    """Time of waits by the other rank (pid) that ended them, as far as wakers were recorded."""
    for_locks: int = 0
    """Time of those waits for other ranks that are for a lock on a file."""

    def share(self, kind: str) -> float:
        """Share of the time."""
        return self.kinds.get(kind, 0) / self.wall if self.wall else 0.0

    @property
    def for_others(self) -> float:
        """Share of the time in which it waits for other ranks, or for the GPU."""
        return sum(map(self.share, FOR_OTHERS))

    @property
    def own(self) -> float:
        """Share of the time in which it does what others may have to wait for."""
        return 1 - self.for_others if self.wall else 0.0


@dataclass(frozen=True)
class RankStates:
    """A job and the times of its ranks, in their order."""

    job: Job
    times: tuple[RankTimes, ...]

    def medians(self) -> dict[str, float]:
        """Median share of each kind, those with most of the time of all ranks first."""
        whole: Counter[str] = Counter()
        for each in self.times:
            whole.update(each.kinds)
        found = {kind: median(each.share(kind) for each in self.times) for kind in whole}
        return dict(sorted(found.items(), key=lambda entry: (-whole[entry[0]], entry[0])))

    def far(self) -> tuple[bool, ...]:
        """Whether each rank stands out from the median of their own time, to either side; none of fewer than three."""
        middle, far = self.bar() or (0.0, float("inf"))
        return tuple(abs(each.own - middle) > far for each in self.times)

    def unlike(self) -> tuple[str, RankTimes, RankTimes] | None:
        """The kind of which the ranks' shares differ most, with the ranks of the least and of the greatest; None if no
        kind's differ much."""
        known = [each for each in self.times if each.wall]
        if not known:
            return None
        pairs = ((kind, *_extremes(known, kind)) for kind in self.medians())
        found = max(pairs, key=lambda pair: pair[2].share(pair[0]) - pair[1].share(pair[0]))
        kind, least, most = found
        return found if most.share(kind) - least.share(kind) > thresholds.RANKS_DIFFER else None

    def bar(self) -> tuple[float, float] | None:
        """Median of the ranks' own time, and the distance from it that stands out: neither moves with one of them.
        None for fewer than three."""
        own = [each.own for each in self.times if each.wall]
        if len(own) < thresholds.ALIKE:
            return None
        middle = median(own)
        spread = thresholds.OUTLIER * DEVIATION * median(abs(value - middle) for value in own)
        return middle, max(spread, float(thresholds.STRAGGLER_EXCESS))


def _extremes(times: Sequence[RankTimes], kind: str) -> tuple[RankTimes, RankTimes]:
    return min(times, key=lambda each: each.share(kind)), max(times, key=lambda each: each.share(kind))


DEVIATION = 1.4826
"""The standard deviation of normally distributed values in terms of the median distance from their median."""


def states_of(facts: Facts, job: Job) -> RankStates:
    """The states of a job's ranks."""
    around = _Around(job, _ends(facts, job), RankLocks(facts, job))
    return RankStates(job, tuple(_times(facts, [rank.pid], around) for rank in job.ranks))


def times_of(facts: Facts, pids: Iterable[int], job: Job) -> RankTimes:
    """Times of processes, of the threads that stand for each. ``job``: those whose other ranks are waited for."""
    return _times(facts, pids, _Around(job, _ends(facts, job), RankLocks(facts, job)))


class _Around(NamedTuple):
    """Knowledge of a job for the times of each rank."""

    job: Job
    ends: Ends
    locks: RankLocks


def _ends(facts: Facts, job: Job) -> Ends:
    """Times of waits that ranks of a job ended, by the thread that waited."""
    graph = facts.recorded.graph if facts.recorded else None
    ranks = {kernel_id(pid): pid for pid in job.pids}
    found: Ends = defaultdict(Counter)
    for (victim, end), time in graph.ends.items() if graph else ():
        if victim.kind == NODE and end.pid in ranks and end.pid != victim.pid:
            found[victim.pid, victim.tid][ranks[end.pid]] += time
    return found


def _times(facts: Facts, pids: Iterable[int], around: _Around) -> RankTimes:
    threads = [thread for pid in pids for thread in standing_for(facts, pid)]
    kinds: Counter[str] = Counter()
    places: Counter[tuple[str, tuple[str, ...]]] = Counter()
    ended: Counter[int] = Counter()
    for_locks = 0
    for thread in threads:
        of = _Thread(facts, thread, around)
        kinds.update(of.kinds)
        places.update(of.places)
        ended.update(of.ended)
        for_locks += of.for_locks
    return RankTimes(sum(facts.threads[thread].wall for thread in threads), kinds, places, ended, for_locks)


def standing_for(facts: Facts, pid: int) -> list[Thread]:
    """The main thread of a process; what works for it, if it only waits for these."""
    own = [thread for thread in facts.own if thread[0] == pid]
    return [thread for thread in own if facts.is_main(thread)] or own[:1]


class _Thread:
    """Times of one thread."""

    def __init__(self, facts: Facts, thread: Thread, around: _Around) -> None:
        self._facts, self._thread, self._locks = facts, thread, around.locks
        self._others = {kernel_id(pid): pid for pid in around.job.pids if pid != thread[0]}
        self.for_locks = 0
        times = facts.threads[thread]
        self.kinds: Counter[str] = Counter({RUNNING: times.on_cpu, RUNNABLE: times.runnable})
        self.places: Counter[tuple[str, tuple[str, ...]]] = Counter()
        for place, total in facts.waits_of(thread).items():
            if place.kind != CORE:
                self._add(place, total)
        self.ended = around.ends.get((kernel_id(thread[0]), kernel_id(thread[1])), Counter())
        self._move_to_others(sum(self.ended.values()) - self.kinds[COLLECTIVE])
        self._add_runs(times.on_cpu)
        self.kinds += Counter()  # without zeros

    def _add(self, place: Place, total: Sum) -> None:
        frames = place.site.frames
        kind = kind_of(Finding(place.kind, _SOMEBODY, 0, 0, (place,)))
        among = total.time if place.wait.job == COLLECTIVE else self._on_others(total)
        if not among:
            among = round(total.time * self._locks.part(self._thread[0], place))
            self.for_locks += among
        if among:
            self.kinds[COLLECTIVE] += among
            self.places[COLLECTIVE, frames] += among
        if among < total.time:
            self.kinds[kind] += total.time - among
            self.places[kind, frames] += total.time - among

    def _on_others(self, total: Sum) -> int:
        """Time of waits on sockets or pipes whose other end another rank has."""
        known = self._facts.objects
        on = (total.objects or {}).items()
        return sum(time for number, time in on if number in known and self._is_others(number))

    def _is_others(self, number: int) -> bool:
        return any(end.pid in self._others for end in self._facts.objects[number].ends)

    def _move_to_others(self, time: int) -> None:
        """Counts so much more of waits that others end, by memory that ranks share for example, as waits for ranks."""
        movable = [key for key in self.places if key[0] in TOLD_BY_OTHERS]
        for kind, frames in sorted(movable, key=lambda key: (-self.places[key], key)):
            part = min(time, self.places[kind, frames])
            if part <= 0:
                return
            for key, sign in (((kind, frames), -1), ((COLLECTIVE, frames), 1)):
                self.places[key] += sign * part
                self.kinds[key[0]] += sign * part
            time -= part

    def _add_runs(self, on_cpu: int) -> None:
        """Divides the time on cores by the samples; who asks in a collective operation whether it may go on waits."""
        runs = self._facts.runs.get(self._thread, {})
        samples = sum(each.samples for each in runs.values())
        if samples < thresholds.FEW_SAMPLES:
            return
        weights: dict[tuple[str, tuple[str, ...]], int] = defaultdict(int)
        for run, total in runs.items():
            kind = COLLECTIVE if run.job == COLLECTIVE else GPU if run.gpu else RUNNING
            weights[kind, run.site.frames] += total.samples
        for (kind, frames), number in weights.items():
            part = on_cpu * number // samples
            self.places[kind, frames] += part
            if kind != RUNNING:
                self.kinds[kind] += part
                self.kinds[RUNNING] -= part


def usual(times: Sequence[RankTimes], kind: str) -> float:
    """Median share of a kind."""
    return median(each.share(kind) for each in times) if times else 0.0
