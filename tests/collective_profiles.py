"""Collectives made by hand."""

from __future__ import annotations

from dataclasses import replace

from stallscope.converters.model import Profile
from stallscope.converters.model.collectives import (
    UNKNOWN,
    CollectiveKind,
    CollectiveRank,
    Collectives,
    MessagePair,
    Messages,
    Standing,
)
from stallscope.converters.model.sites import Site
from stallscope.converters.model.steps import Spent, StepRun, StepWait
from summary_profiles import MS, SECOND, SLEEP, Tracee, empty

LOAD, COMPUTE = Site(("train", "load_batch", "read"), "folio_wait_bit_common"), Site(("train", "compute"), "")
MEETINGS = 100


def spent(blocked: int, on_cpu: int = 2 * MS, queued: int = 0, count: int = MEETINGS, samples: int = 4) -> Spent:
    """Times of a rank between meetings: ns for each."""
    wall = (blocked + on_cpu + queued) * count
    waits = (StepWait(LOAD, blocked * count, count),) if blocked else ()
    ran = (StepRun(COMPUTE.frames, samples),) if samples else ()
    return Spent(count, wall, on_cpu * count, blocked * count, waits, samples, ran)


def rank(number: int, *, last: int = 0, late: int = 0, waited: int = 0, between: Spent | None = None) -> CollectiveRank:
    return CollectiveRank(number, 10 + number, "train", 10 + number, MEETINGS, last, late, waited, between)


def of_ranks(*ranks: CollectiveRank, spread: int = 8 * MS, deviation: int = 0, meetings: int = MEETINGS) -> Collectives:
    kinds = (CollectiveKind("all-reduce", 256 << 20, meetings, spread, 2 * spread, spread * meetings),)
    return Collectives("NCCL", len(ranks), True, meetings, spread, deviation, ranks, kinds)


def one_late(*, last: int = MEETINGS, late: int = 8 * MS, waited: int = SECOND, others: int = 0) -> Collectives:
    """Four ranks, of which rank 1 waits for its loader for 8 ms; ``others``: so many ns of the others do, too."""
    waiting = [rank(number, waited=waited, between=spent(others)) for number in (0, 2, 3)]
    return of_ranks(waiting[0], rank(1, last=last, late=late, between=spent(8 * MS)), *waiting[1:])


def pair(*, last: int = MEETINGS) -> Collectives:
    """Two ranks, of which rank 1 comes last to so many, by 8 ms; rank 0 waits for 4 s."""
    late = rank(1, last=last, late=4 * MS, between=spent(8 * MS))
    return of_ranks(
        rank(0, last=MEETINGS - last, late=-4 * MS, waited=4 * SECOND, between=spent(0)), late, deviation=4 * MS
    )


def pipeline(*waits: tuple[int, int], messages: int = MEETINGS, between: int = 60 * MS) -> Collectives:
    """Four ranks, each of which sends to the next one; no collectives. ``waits``: of each of the three pairs, ns for
    which the receiver and the sender wait. Rank 1 waits for its loader, ``between`` ns for each message."""
    times = waits or ((0, 0), (0, 0), (0, 0))
    pairs = tuple(
        MessagePair(place, place + 1, messages, 4096 * messages, messages, *each) for place, each in enumerate(times)
    )
    ranks = tuple(rank(number) for number in range(4))
    spent_by = spent(0), spent(between), spent(0), spent(0)
    return Collectives("MPI", UNKNOWN, True, 0, 0, 0, ranks, (), messages=Messages(pairs, spent_by))


def late_messages() -> Collectives:
    """Rank 1 holds up all others: ranks 2 and 3 wait for messages, rank 0 until its own ones are taken."""
    return pipeline((0, 5 * SECOND), (6 * SECOND, 0), (6 * SECOND, 0))


def standing(*, what: str = "", size: int = 0) -> Collectives:
    """Four ranks, of which rank 1 is not in the collective of the others, or calls another one."""
    found = one_late()
    inside = tuple(Standing(each.pid, 26, "all-reduce", 4096, SECOND) for each in found.ranks)
    other = replace(inside[1], number=26 if what else 25, what=what, bytes=size)
    return replace(found, standing=(inside[0], other, *inside[2:]))


def profile_of(*found: Collectives) -> Profile:
    """A trace of ten seconds, of four ranks."""
    profile = empty()
    for number in range(4):
        Tracee(profile, 10 + number, "train", 10 + number, "train").wait(SLEEP, "interruptible", 9 * SECOND, 9).run(
            SECOND
        )
    profile.collectives = list(found)
    profile.duration_ns = 10 * SECOND
    return profile


__all__ = [
    "UNKNOWN",
    "late_messages",
    "of_ranks",
    "one_late",
    "pair",
    "pipeline",
    "profile_of",
    "rank",
    "spent",
    "standing",
]
