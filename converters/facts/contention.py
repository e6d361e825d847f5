"""Competition for cores, per process: number of threads, waits for a core, and allowed cores."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..base.text import json_text
from ..model import Profile, ThreadTimes
from ..model.processes import CpuLimit, ProcessTimes, cpu_set, latency_bound, percentile_bucket
from .identity import is_sum, kernel_ids, number_of, processes_of

SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Contention:
    """Figures of one process or of several. Times in ns."""

    process: str
    pids: tuple[int, ...]
    duration: int
    """Trace length; 0 when unknown."""
    span: int
    """Lifetime of the processes within the trace."""
    threads: int
    created: int
    """Created during the trace."""
    ended: int
    switches: int
    wall: int
    on_cpu: int
    runnable: int
    latencies: tuple[int, ...]
    """See `ProcessTimes`; zeros when unknown."""
    cpus: frozenset[int]
    """The cores that they may use; empty when unknown."""
    limits: tuple[CpuLimit, ...]
    """One entry per control group."""
    allowed: float | None
    """Number of cores that the processes may use, by affinity and quotas; None when unknown."""
    environments: tuple[dict[str, str] | None, ...]
    """See `ProcessTimes`, one per process."""
    processes: int = 1
    """Number of processes, those that are only known as a sum included."""

    def per_second(self, number: int) -> float | None:
        """``number`` per second of trace; None if its length is unknown."""
        return number * SECOND / self.duration if self.duration > 0 else None

    @property
    def used(self) -> float | None:
        """Average number of cores used."""
        return self.on_cpu / self.duration if self.duration > 0 else None

    @property
    def wanted(self) -> float | None:
        """Average number of threads that ran or waited for a core in ``span``."""
        return (self.on_cpu + self.runnable) / self.span if self.span > 0 else None

    @property
    def mean_latency(self) -> int | None:
        """Mean wait for a core."""
        waits = sum(self.latencies)
        return self.runnable // waits if waits else None

    @property
    def p99_bucket(self) -> int | None:
        """The bucket of the 99th percentile of waits for a core; None if there were none."""
        return percentile_bucket(self.latencies, 99)

    def to_json(self) -> dict[str, Any]:
        """Plain data; null for what is unknown, and for a p99 above all bounds."""
        bucket = self.p99_bucket
        used = self.used
        return {
            "process": json_text(self.process),
            "pids": kernel_ids(self.pids),
            "threads": self.threads,
            "created": self.created,
            "created_per_second": _rounded(self.per_second(self.created)),
            "ended": self.ended,
            "ended_per_second": _rounded(self.per_second(self.ended)),
            "switches": self.switches,
            "switches_per_second": _rounded(self.per_second(self.switches)),
            "wall_ns": self.wall,
            "on_cpu_ns": self.on_cpu,
            "runnable_ns": self.runnable,
            "runnable_share": round(self.runnable / self.wall, 6) if self.wall else None,
            "core_waits": sum(self.latencies),
            "core_wait_mean_ns": self.mean_latency,
            "core_wait_p99_below_ns": None if bucket is None else latency_bound(bucket),
            "cores_used": None if used is None else round(used, 4),
            "cores_allowed": None if self.allowed is None else round(self.allowed, 4),
            "cpus": sorted(self.cpus),
            "limits": [_limit_json(limit) for limit in self.limits],
            "environment": [
                None if each is None else {json_text(name): json_text(value) for name, value in each.items()}
                for each in self.environments
            ],
        }


def contention_of(profile: Profile) -> tuple[Contention, ...]:
    """One per examined process; those that ran or waited for a core for longest come first."""
    threads: dict[int, list[ThreadTimes]] = defaultdict(list)
    for times in profile.threads:
        threads[times.pid].append(times)
    made = [
        _one(process, threads[process.pid], profile.duration_ns)
        for process in profile.processes
        if process.pid in threads
    ]
    return tuple(sorted(made, key=lambda each: (-each.on_cpu - each.runnable, each.pids)))


def together(members: Sequence[Contention], name: str) -> Contention:
    """Merges ``members`` (at least one) into one called ``name``."""
    limits = {limit.cgroup: limit for member in members for limit in member.limits}
    return Contention(
        process=name,
        pids=tuple(sorted(pid for member in members for pid in member.pids)),
        duration=members[0].duration,
        # Unknown: which of them lived at the same time.
        span=members[0].span if len(members) == 1 else members[0].duration,
        threads=sum(member.threads for member in members),
        created=sum(member.created for member in members),
        ended=sum(member.ended for member in members),
        switches=sum(member.switches for member in members),
        wall=sum(member.wall for member in members),
        on_cpu=sum(member.on_cpu for member in members),
        runnable=sum(member.runnable for member in members),
        latencies=_added(member.latencies for member in members),
        cpus=frozenset().union(*(member.cpus for member in members)),
        limits=tuple(limits.values()),
        allowed=_allowed([(member.cpus, member.limits) for member in members]),
        environments=tuple(each for member in members for each in member.environments),
        processes=sum(member.processes for member in members),
    )


def _one(process: ProcessTimes, threads: Sequence[ThreadTimes], duration: int) -> Contention:
    cpus = cpu_set(process.cpus)
    longest = _longest(threads)
    # Of threads that are added up, it is not known which of them lived at the same time.
    whole = not duration or any(times.count > 1 for times in threads)
    return Contention(
        process=process.process,
        pids=(process.pid,),
        duration=duration,
        span=(duration or longest) if whole else min(longest, duration),
        threads=number_of(threads),
        created=number_of(times for times in threads if times.creator),
        ended=number_of(times for times in threads if times.exited),
        switches=sum(times.switches for times in threads),
        wall=sum(times.wall for times in threads),
        on_cpu=sum(times.on_cpu for times in threads),
        runnable=sum(times.runnable for times in threads),
        latencies=process.latencies,
        cpus=cpus,
        limits=process.limits,
        allowed=_allowed([(cpus, process.limits)]),
        environments=(process.environment,),
        processes=processes_of(threads),
    )


def _longest(threads: Sequence[ThreadTimes]) -> int:
    """Longest life of a thread. One that has executed programs has an account for each, and lives as long as all."""
    lives: Counter[int] = Counter()
    for times in threads:
        if is_sum(times.tid) or times.count > 1:
            lives[times.tid] = max(lives[times.tid], times.wall // times.count)
        else:
            lives[times.tid] += times.wall
    return max(lives.values())


def _allowed(members: Sequence[tuple[frozenset[int], tuple[CpuLimit, ...]]]) -> float | None:
    """Number of cores that all may use together: limited by affinity, by each one's quotas, and by shared quotas."""
    if not all(cpus for cpus, _ in members):
        return None
    allowed = float(len(frozenset().union(*(cpus for cpus, _ in members))))
    if all(limits for _, limits in members):
        tightest = [min(limits, key=lambda limit: limit.cores) for _, limits in members]
        allowed = min(allowed, sum({limit.cgroup: limit.cores for limit in tightest}.values()))
    groups = [{limit.cgroup for limit in limits} for _, limits in members]
    shared = set.intersection(*groups)
    return min([allowed, *(limit.cores for limit in members[0][1] if limit.cgroup in shared)])


def _added(latencies: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*(each for each in latencies if each), strict=True)))


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 3)


def _limit_json(limit: CpuLimit) -> dict[str, Any]:
    return {
        "cgroup": json_text(limit.cgroup),
        "cores": round(limit.cores, 4),
        "period_us": limit.period_us,
        "periods": limit.periods,
        "throttled_periods": limit.throttled_periods,
        "throttled_ns": limit.throttled_ns,
    }
