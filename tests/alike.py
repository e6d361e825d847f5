"""Profiles of eight processes that are alike, the ranks of a job, of which one differs."""

from __future__ import annotations

from stallscope.converters.model import Frame, Labels, Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.model.calls import CallTimes
from stallscope.converters.model.processes import ProcessTimes

MS = 1_000_000
VALUES = [ValueType("calls", "nanoseconds"), ValueType("calls", "count")]
WAITS = [ValueType("off-cpu", "nanoseconds"), ValueType("count", "count"), ValueType("min", "nanoseconds", "min"),
         ValueType("max", "nanoseconds", "max")]  # fmt: skip


def labels(pid: int, state: str) -> Labels:
    return (("pid", pid), ("process", "train"), ("state", state), ("thread", "train"), ("tid", pid))


def of_calls(slow: int = 3, number: int = 8, *, ranks: bool = True, factor: int = 5, name: str = "train") -> Profile:
    """Processes 100, 101, …; the ranks are in another order than the pids. cudaMalloc calls cuMemAlloc_v2, and is
    blocked for half of the time, in the slow process for nearly all of it."""
    made = Profile(VALUES, duration_ns=1000 * MS)
    for i in range(number):
        pid, rank = 100 + i, number - 1 - i
        mean = (2 * MS + rank * 10_000) * (factor if rank == slow else 1)
        made.processes.append(ProcessTimes(pid, name, ranks={"gpu": "0", "rank": str(rank)} if ranks else {}))
        made.threads.append(ThreadTimes(pid, name, pid, name, 1000 * MS, 1000 * MS, 0, {}))
        made.calls.append(CallTimes("cudaMalloc", "", pid, name, 10, 10 * mean, mean, mean, 5 * mean, inner=9 * mean,
                                    library="libcudart.so.12"))  # fmt: skip
        made.calls.append(CallTimes("cuMemAlloc_v2", "", pid, name, 10, 9 * mean, mean, mean, 5 * mean,
                                    library="libcuda.so.1"))  # fmt: skip
        blocked = 5 * mean if rank != slow else 9 * mean
        stack = (Frame("cudaMalloc", "api"),)
        made.samples.append(Sample(stack, (blocked, 0), labels(pid, "uninterruptible")))
        made.samples.append(Sample(stack, (10 * mean - blocked, 10), labels(pid, "running")))
    return made


def of_waits(waits: dict[int, int], *, ranks: bool = True) -> Profile:
    """Profile of ranks, from the percentage of its time in which each waits."""
    made = Profile(WAITS, duration_ns=1000 * MS)
    for rank, percent in waits.items():
        pid = 100 + rank
        made.processes.append(ProcessTimes(pid, "train", ranks={"rank": str(rank)} if ranks else {}))
        times = percent * 10 * MS
        made.threads.append(
            ThreadTimes(pid, "train", pid, "train", 1000 * MS, 1000 * MS - times, 0, {"uninterruptible": times})
        )
        made.samples.append(Sample((Frame("ncclAllReduce"),), (times, 1, times, times), labels(pid, "uninterruptible")))
    return made
