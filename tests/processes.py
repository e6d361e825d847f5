"""Processes made by hand for the summary: their threads, what they waited for a core, and what they may use."""

from __future__ import annotations

from stallscope.converters.model import Profile, ThreadTimes, ValueType
from stallscope.converters.model.processes import CpuLimit, ProcessTimes, latency_bucket

MS = 1_000_000
SECOND = 1_000 * MS
HALF = CpuLimit("/half", 50_000, 100_000, 100, 98, 4_900 * MS)


def latencies(**waits: int) -> tuple[int, ...]:
    """Latencies by length: ``us_5=3`` are three waits of 5 µs."""
    counts = [0] * 24
    for length, number in waits.items():
        unit, _, value = length.partition("_")
        counts[latency_bucket(int(value) * {"us": 1_000, "ms": MS}[unit])] += number
    return tuple(counts)


def profile(seconds: int = 10) -> Profile:
    return Profile([ValueType("off-cpu", "nanoseconds"), *COUNTS], duration_ns=seconds * SECOND, host="node7")


COUNTS = [ValueType("count", "count"), ValueType("min", "nanoseconds", "min"), ValueType("max", "nanoseconds", "max")]


def process(
    to: Profile,
    pid: int,
    name: str,
    *,
    cpus: str = "0-3",
    waits: tuple[int, ...] = (),
    limits: tuple[CpuLimit, ...] = (),
    environment: dict[str, str] | None = None,
) -> None:
    to.processes.append(ProcessTimes(pid, name, waits, cpus, limits, environment))


def threads(
    to: Profile,
    pid: int,
    name: str,
    thread: str,
    number: int = 1,
    *,
    wall: int = 10 * SECOND,
    on_cpu: int = 0,
    runnable: int = 0,
    switches: int = 0,
    creator: int = 0,
    exited: bool = False,
) -> None:
    """``number`` of them; the first thread of a process is its main one."""
    known = sum(times.pid == pid for times in to.threads)
    for tid in range(pid + known, pid + known + number):
        blocked = {"interruptible": wall - on_cpu - runnable}
        to.threads.append(
            ThreadTimes(pid, name, tid, thread, wall, on_cpu, runnable, blocked, switches, exited, creator)
        )


def crowd(ranks: int = 2, cpus: str = "0-3", **given: object) -> Profile:
    """Ranks of 16 threads each on four cores: each runs a second of ten and waits for eight."""
    made = profile()
    for rank in range(ranks):
        pid = 1000 * (rank + 1)
        process(made, pid, "train", cpus=cpus, waits=latencies(us_5=900, ms_3=100), **given)  # type: ignore[arg-type]
        threads(made, pid, "train", "train", switches=200)
        threads(made, pid, "train", "omp", 16, on_cpu=SECOND, runnable=8 * SECOND, switches=100)
    return made


def pools(seconds: int = 10, number: int = 4000, life: int = 2 * MS) -> Profile:
    """Threads that live briefly, made by the main thread one after the other."""
    made = profile(seconds)
    process(made, 7, "serve", waits=latencies(us_5=9))
    threads(made, 7, "serve", "serve", on_cpu=SECOND, wall=seconds * SECOND)
    threads(made, 7, "serve", "pool-1", number, wall=life, on_cpu=life // 4, creator=7, exited=True, switches=1)
    return made
