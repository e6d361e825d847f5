"""What is known of a traced process beside the times of its threads: how long these waited for a core, and which cores,
how much of them, and how many threads it is told to have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LATENCY_BUCKETS = 24
LATENCY_SHIFT = 10
"""Waits for a core by their length, as the probes count them (bpf/include/records.h): bucket 0 is up to 1,024 ns, each
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
"""Variables by which libraries are told how many threads to make, the best known ones first."""


def latency_bucket(ns: int) -> int:
    """Where a wait of ``ns`` is counted."""
    return min((ns >> LATENCY_SHIFT).bit_length(), LATENCY_BUCKETS - 1)


def latency_bound(bucket: int) -> int | None:
    """ns, of which all waits in ``bucket`` are shorter; None: there is no such bound."""
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


@dataclass(frozen=True, slots=True)
class CpuLimit:
    """A control group that may not have more of the cores than its quota, and what that did during the trace."""

    cgroup: str
    """Its folder, as /proc/PID/cgroup names it (hostile)."""
    quota_us: int
    """In each period, of all cores together."""
    period_us: int
    periods: int = 0
    """That began during the trace while the group had work; 0 when unknown."""
    throttled_periods: int = 0
    """In which the quota was used up."""
    throttled_ns: int = 0
    """In which the group had to stop: those of each core, added up."""

    @property
    def cores(self) -> float:
        """As many as it may use on average."""
        return self.quota_us / self.period_us


@dataclass(slots=True)
class ProcessTimes:
    """One process that was traced."""

    pid: int
    process: str
    latencies: tuple[int, ...] = ()
    """How often its threads waited for a core, by `latency_bucket`; empty when unknown."""
    cpus: str = ""
    """The cores that its threads may use, as in ``0-3,8``; "" when unknown."""
    limits: tuple[CpuLimit, ...] = ()
    """Of its control group and of those above it, the innermost first."""
    environment: dict[str, str] | None = None
    """Those of `THREAD_VARIABLES` that it was started with (values are hostile); None when unknown."""


def cpu_set(cpus: str) -> frozenset[int]:
    """The numbers in a list such as ``0-3,8``. ValueError when it is none, or has more than 65,536 cores."""
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
