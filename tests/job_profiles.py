"""Profiles of jobs made by hand: ranks that meet in MPI_Allreduce, and what shows that they are of one job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stallscope.converters.model import Profile, Sample, Stack, ValueType
from stallscope.converters.model.collectives import Watched
from stallscope.converters.model.origins import ENVIRONMENT, Ancestor, ProcessOrigin
from stallscope.converters.model.processes import ProcessTimes
from summary_profiles import EXE, LIBC, SECOND, SLEEP, Tracee, empty, kernel, user

MPIRUN = Ancestor(50, "mpirun")
MEET = (
    *user(EXE, "main"),
    *user(None, "MPI_Allreduce"),
    *user(LIBC, "poll"),
    *kernel("__x64_sys_poll", "do_sys_poll"),
)
"""Wait for other ranks; the function is MPI's, in a file that is not known."""
TEN = 10 * SECOND


def rank(
    to: Profile,
    pid: int,
    number: int | None,
    own: float = 0.1,
    *,
    above: Sequence[Ancestor] = (MPIRUN,),
    size: int = 0,
    gpu: str = "",
    variables: Mapping[str, str] | None = None,
    executable: str = "/opt/train",
    cgroup: str = "/job",
    name: str = "train",
    source: str = ENVIRONMENT,
    meets: int = 100,
) -> Tracee:
    """Adds a rank that sleeps for this share of 10 s and waits for the others for the rest. ``number``: None: its
    environment says nothing. ``meets``: number of the waits for others."""
    tracee = Tracee(to, pid, name, pid, name)
    if own > 0:
        tracee.wait(SLEEP, "interruptible", round(own * TEN), 100)
    if own < 1:
        tracee.wait(MEET, "interruptible", round((1 - own) * TEN), meets)
    labels = {} if number is None else {"rank": str(number)}
    labels |= {"world-size": str(size)} if size else {}
    labels |= {"gpu": gpu} if gpu else {}
    to.processes.append(ProcessTimes(pid, name, ranks=labels))
    to.origins.append(
        ProcessOrigin(
            pid, name, list(above), executable, cgroup, 1000 + pid, dict(variables or {}), source if labels else ""
        )
    )
    return tracee


def job(*own: float, gpus: bool = False) -> Profile:
    """Ranks 0, 1, … (pid 100, 101, …) with so much time of their own, of a job that mpirun has started."""
    made = empty()
    for number, part in enumerate(own):
        rank(made, 100 + number, number, part, size=len(own), gpu=str(number) if gpus else "")
    return made


def stuck(ranks: int = 4, out: int = 1, *, size: int = 0) -> Profile:
    """A job that stands still: rank ``out`` sleeps again and again, the others are in MPI_Allreduce all the time."""
    made = empty()
    for number in range(ranks):
        each = rank(made, 100 + number, number, 0.9 if number == out else 0.0, size=size or ranks, meets=1)
        if number == out:
            each.run(TEN // 100)
    return made


def polling_ranks(
    samples: Mapping[Stack, int], ranks: int = 2, *, waits: Stack = (), waited: float = 0.05, calls: int = 0
) -> Profile:
    """A job of which rank 1 sleeps again and again, and the others run, with so many samples in each stack.

    ``waits``: they are blocked there for a share of the time, in many waits. ``calls``: of each, as the trace saw."""
    made = stuck(ranks)
    made.value_types = [ValueType("wall", "nanoseconds"), *made.value_types[1:], ValueType("samples", "count")]
    made.samples = [each._replace(values=(*each.values, 0)) for each in made.samples if each.label("pid") == 101]
    for times in made.threads:
        made.watched.append(Watched(times.pid, calls))
        if times.pid == 101:
            continue
        blocked = round(waited * TEN) if waits else 0
        labels = [("pid", times.pid), ("process", "train"), ("thread", "train"), ("tid", times.tid)]
        times.blocked, times.on_cpu = ({"interruptible": blocked} if blocked else {}), TEN - blocked
        if blocked:
            given = tuple(sorted([*labels, ("state", "interruptible")]))
            made.samples.append(Sample(waits, (blocked, 100, 1, blocked // 100, 0), given))
        for stack, number in samples.items():
            weight = times.on_cpu * number // sum(samples.values())
            given = tuple(sorted([*labels, ("state", "running")]))
            made.samples.append(Sample(stack, (weight, 0, 0, 0, number), given))
    return made


def late(own: float = 0.8, others: float = 0.1, ranks: int = 8) -> Profile:
    """A job whose rank 3 has so much time of its own."""
    return job(*(own if number == 3 else others for number in range(ranks)), gpus=True)
