"""Ranks of a job wait for those that are late: with much more time of their own than the median of all ranks.

Median and median distance decide, so that who is late does not move the bar. Ranks that are late in turn have times
alike, and two ranks have no median.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.jobs import Job, Rank, jobs_of
from ..facts.wait_functions import COLLECTIVE
from . import holder
from .rank_states import FOR_OTHERS, RankStates, RankTimes, states_of, times_of, usual
from .verdict import Verdict

RULE = "straggler"


class Excess(NamedTuple):
    """Time that a late rank spends beyond the others."""

    kind: str
    """`rank_states.RUNNING`, `RUNNABLE`, or the kind of a verdict."""
    share: float
    """Share of its time."""
    usual: float
    """Median share of the other ranks."""
    frames: tuple[str, ...] = ()
    """Place with most of what is beyond the others; () if it is not known. Hostile."""
    in_place: float = 0.0
    """Share of its time there."""


class Straggler(NamedTuple):
    """Late ranks, and what shows it."""

    late: tuple[Rank, ...]
    """The latest one first."""
    ranks: int
    """Number of all ranks that were traced."""
    waits: float
    """Share of its time for which the late one waits for other ranks or the GPU."""
    others_wait: float
    """Median of the other ranks."""
    excess: Excess
    ended: float | None
    """Part of the others' waits for ranks that end with the late ones; None if wakers were not recorded."""
    workers: Excess | None = None
    """Main occupation of the processes that the latest rank has started; None if there are none."""
    for_lock: bool = False
    """Whether the others mostly wait for a lock on a file, of which the verdict on these waits tells."""


def find(facts: Facts) -> list[Verdict]:
    """One for each job with late ranks."""
    found = []
    for job in jobs_of(facts):
        states = states_of(facts, job)
        if (detail := straggler_of(facts, states)) and not detail.for_lock:
            late = {rank.pid for rank in detail.late}
            others = (times for rank, times in zip(job.ranks, states.times, strict=True) if rank.pid not in late)
            time = sum(map(_for_others, others))
            found.append(Verdict(RULE, COLLECTIVE, time, 1, job.pids, detail=detail, is_effect=True))
    return found


def told_as_late(verdicts: Sequence[Verdict]) -> Straggler | None:
    """Late ranks of which an answer with these verdicts tells: who has a lock is told instead of them."""
    if any(each.rule == holder.RULE for each in verdicts):
        return None
    return next((each.detail for each in verdicts if isinstance(each.detail, Straggler)), None)


def straggler_of(facts: Facts, states: RankStates) -> Straggler | None:
    """The late ranks of a job; None if no rank is late."""
    bar = states.bar()
    if bar is None:
        return None
    middle, far = bar
    in_order = sorted(zip(states.job.ranks, states.times, strict=True), key=lambda pair: -pair[1].own)
    late = [pair for pair in in_order if pair[1].own > middle + far]
    others = [pair for pair in in_order if pair not in late]
    if not late:
        return None
    rank, times = late[0]
    rest = [each for _, each in others]
    waits = sorted(each.for_others for each in rest)[len(rest) // 2]
    return Straggler(
        tuple(each for each, _ in late),
        len(in_order),
        times.for_others,
        waits,
        _excess(times, rest),
        _ended(rest, [each.pid for each, _ in late]),
        _workers(facts, rank, states.job),
        sum(each.for_locks for each in rest) >= thresholds.MOSTLY * sum(_for_others(each) for each in rest) > 0,
    )


def _for_others(times: RankTimes) -> int:
    return sum(times.kinds.get(kind, 0) for kind in FOR_OTHERS)


def _excess(late: RankTimes, others: list[RankTimes]) -> Excess:
    """The kind with most time beyond the others, and the place with most of that."""
    kinds = [kind for kind in late.kinds if kind not in FOR_OTHERS]
    kind = max(kinds, key=lambda kind: (late.share(kind) - usual(others, kind), kind))
    beyond = {
        frames: time / late.wall - _usual_in(others, kind, frames)
        for (of, frames), time in late.places.items()
        if of == kind and frames
    }
    frames = max(beyond, key=lambda frames: (beyond[frames], frames), default=())
    in_place = late.places.get((kind, frames), 0) / late.wall
    if in_place < thresholds.TELLING * late.share(kind):
        frames, in_place = (), 0.0
    return Excess(kind, late.share(kind), usual(others, kind), frames, in_place)


def _usual_in(others: list[RankTimes], kind: str, frames: tuple[str, ...]) -> float:
    shares = sorted(each.places.get((kind, frames), 0) / each.wall for each in others if each.wall)
    return shares[len(shares) // 2] if shares else 0.0


def _ended(others: list[RankTimes], late: list[int]) -> float | None:
    """Part of the waits of ``others`` that rank ended which those that are ``late`` did."""
    whole = sum(sum(each.ended_by.values()) for each in others)
    return sum(each.ended_by.get(pid, 0) for each in others for pid in late) / whole if whole else None


def _workers(facts: Facts, rank: Rank, job: Job) -> Excess | None:
    """Main occupation of the workers of a rank."""
    times = times_of(facts, rank.workers, job) if rank.workers else None
    return _excess(times, []) if times and times.wall and times.kinds.keys() - {*FOR_OTHERS} else None
