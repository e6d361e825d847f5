"""Data of a traced process besides the times of its threads: waits for a core, allowed cores, CPU quotas, and
environment variables that set the number of threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

LATENCY_BUCKETS = 24
LATENCY_SHIFT = 10
"""Waits for a core are counted by length, as in the probes (bpf/include/records.h): bucket 0 is up to 1,024 ns, each
next one up to twice as much, the last one all others."""

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "TORCH_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
)
"""Environment variables that set libraries' numbers of threads, the best known ones first."""


def latency_bucket(ns: int) -> int:
    """The bucket of a wait of ``ns``."""
    return min((ns >> LATENCY_SHIFT).bit_length(), LATENCY_BUCKETS - 1)


def latency_bound(bucket: int) -> int | None:
    """Exclusive upper bound, in ns, of waits in ``bucket``; None for the last bucket."""
    return None if bucket >= LATENCY_BUCKETS - 1 else 1 << (bucket + LATENCY_SHIFT)


def percentile_bucket(latencies: Sequence[int], percent: int) -> int | None:
    """The bucket up to which at least ``percent`` of the waits lie; None when there are none."""
    needed = -(-sum(latencies) * percent // 100)
    if needed <= 0:
        return None
    for bucket, waits in enumerate(latencies):
        needed -= waits
        if needed <= 0:
            return bucket
    raise AssertionError("the waits are fewer than their sum")


OTHER_NAMES = "[other names]"
"""The name of threads that ended and are added up whatever their names were."""


@dataclass(frozen=True, slots=True)
class CpuLimit:
    """A control group with a CPU quota, and the effects of the quota during the trace."""

    cgroup: str
    """Folder of the control group, as /proc/PID/cgroup names it (hostile)."""
    quota_us: int
    """Quota in µs per period, for all cores together."""
    period_us: int
    periods: int = 0
    """Begun during the trace while the group had work; 0 when unknown."""
    throttled_periods: int = 0
    """Periods that used up the quota."""
    throttled_ns: int = 0
    """Time for which the group was stopped, summed over all cores."""

    @property
    def cores(self) -> float:
        """Cores that it may use on average."""
        return self.quota_us / self.period_us


@dataclass(slots=True)
class ProcessTimes:
    """One process that was traced."""

    pid: int
    process: str
    latencies: tuple[int, ...] = ()
    """Number of the threads' waits for a core, by `latency_bucket`; empty when unknown."""
    cpus: str = ""
    """The cores that its threads may use, as in ``0-3,8``; "" when unknown."""
    limits: tuple[CpuLimit, ...] = ()
    """Limits of its control group and its ancestors, innermost first."""
    environment: dict[str, str] | None = None
    """Variables among `THREAD_VARIABLES` that the process was started with (values are hostile); None when unknown."""
    script: str = ""
    """Script of an interpreter (hostile): ``train.py``, ``-m package``, ``-c``, ``app.jar``; "" if there is none."""
    pid_life: int = 1
    """Number of the process among those that have had this pid during the trace, from 1."""
    ranks: dict[str, str] = field(default_factory=dict)
    """Rank of the process in a job, and its GPUs: labels of its samples, see `ranks.VARIABLES`."""


def cpu_set(cpus: str) -> frozenset[int]:
    """The numbers in a list such as ``0-3,8``. ValueError if malformed, or for more than 65,536 cores."""
    found: set[int] = set()
    for part in filter(None, cpus.split(",")):
        first, _, last = part.partition("-")
        begin, end = int(first), int(last or first)
        if not 0 <= begin <= end < 1 << 16:
            raise ValueError(f"{part!r} is no range of cores")
        found.update(range(begin, end + 1))
    return frozenset(found)


def cpu_list(cpus: Sequence[int] | frozenset[int] | set[int]) -> str:
    """Inverse of `cpu_set`."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
