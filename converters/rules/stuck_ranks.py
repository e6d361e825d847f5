"""Ranks of a job stand in a collective operation for all of the trace, to which others of them have not come.

Their main threads did not move once, or poll there and made no call: they wait there since before the trace began. For
a hang that one looks at when it is there, or a rank that is late by more than the trace takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.jobs import Job, Rank, jobs_of
from ..facts.signal_handlers import interrupted_in
from ..facts.wait_functions import COLLECTIVE
from . import all_wait, ends_with, for_others, held_up, idle, polling, straggler, workers
from .chain_ends import Chain, chain_of, doing
from .finding import Finding, running, waiting
from .rank_states import RankTimes, standing_for, states_of
from .standing_ranks import Stands, standing_in
from .verdict import Verdict

RULE = "stuck-ranks"
LESS = (all_wait.RULE, idle.RULE, for_others.RULE, workers.RULE, straggler.RULE, ends_with.RULE, polling.RULE)
"""Rules whose verdicts on such ranks tell less: what each of them looks like by itself."""


class Inside(NamedTuple):
    """A rank that stands in an operation."""

    rank: Rank
    frames: tuple[str, ...]
    """Place; hostile."""


class Outside(NamedTuple):
    """A rank that does not."""

    rank: Rank
    kind: str
    """Longest of its states: `rank_states.RUNNING`, `RUNNABLE`, or the kind of a verdict."""
    share: float
    """Share of its time."""
    frames: tuple[str, ...]
    """Place with most of that; () if it is not known. Hostile."""
    chain: Chain = Chain()
    """Processes and threads for which it waits."""
    interrupted: tuple[str, ...] = ()
    """Place in which a signal has interrupted it, whose handler it is in; () if it is in none. Hostile."""


class StuckRanks(NamedTuple):
    """The detail of such a verdict."""

    process: str
    """Name; hostile."""
    inside: tuple[Inside, ...]
    """Ranks that stand in the operation in which most do."""
    others: tuple[Inside, ...]
    """Ranks that stand in another one."""
    outside: tuple[Outside, ...]
    maybe: tuple[Inside, ...]
    """Ranks that wait for their GPUs: the operation may be one of those that the GPU has been asked for."""
    missing: tuple[int, ...]
    """Numbers of ranks that are not among the traced processes; () if it is not known how many there are."""
    for_gpu: bool
    """Whether they wait until the GPU has done what was asked: an operation in which ranks meet, or much work."""
    polls: bool = False
    """Whether those of ``inside`` run while they wait."""
    size: int = 0
    """Number of all ranks of the job; 0 if it is not known."""


def find(facts: Facts) -> list[Verdict]:
    """One for each job."""
    if facts.duration < thresholds.STANDS_LEAST * 1e9 or not (facts.roles.still or facts.watched):
        return []
    return [verdict for job in jobs_of(facts) if (verdict := _verdict(facts, job))]


def _verdict(facts: Facts, job: Job) -> Verdict | None:
    if any(each.standing and job.pids & {rank.pid for rank in each.ranks} for each in facts.collectives):
        return None  # the calls tell more
    standing = {rank: stands for rank in job.ranks if (stands := standing_in(facts, rank.pid))}
    detail = _detail(facts, job, standing)
    if detail is None:
        return None
    inside = {each.rank for each in (*detail.inside, *detail.others)}
    found = _findings(facts, [stands for rank, stands in standing.items() if rank in inside])
    time = sum(each.time for each in found)
    return Verdict(RULE, COLLECTIVE, time, 1, job.pids, found[0], detail=detail, is_effect=True)


def _findings(facts: Facts, standing: Sequence[Stands]) -> list[Finding]:
    """Findings on those that are blocked, and on those that poll: at most two, one at least."""
    blocked = {each.thread: [each.place] for each in standing if each.place}
    polls = [each.thread for each in standing if not each.place]
    kind = next((place.kind for (place,) in blocked.values()), "")
    waits = waiting(facts, kind, blocked) if blocked else None
    return [*([waits] if waits else []), *([running(facts, polls)] if polls else [])]


def _detail(facts: Facts, job: Job, standing: dict[Rank, Stands]) -> StuckRanks | None:
    """None if nothing shows that they wait for each other: one alone may have much to do on its GPU, or wait for the
    message of one that works."""
    meet = {rank: stands for rank, stands in standing.items() if stands.meets}
    chosen = meet or standing
    for_all = any(stands.for_all for stands in meet.values())
    if not chosen or (not for_all and len(standing) < thresholds.PROCESSES_FIT):
        return None
    by_place = Counter(stands.operation for stands in chosen.values())
    most = max(by_place, key=lambda frames: (by_place[frames], frames))
    inside = {rank: Inside(rank, stands.frames) for rank, stands in chosen.items() if stands.operation == most}
    states = dict(zip(job.ranks, states_of(facts, job).times, strict=True))
    return StuckRanks(
        facts.name_of_pid(job.ranks[0].pid),
        tuple(inside.values()),
        tuple(Inside(rank, stands.frames) for rank, stands in chosen.items() if rank not in inside),
        tuple(_outside(facts, rank, states[rank]) for rank in job.ranks if rank not in standing),
        tuple(Inside(rank, stands.frames) for rank, stands in standing.items() if rank not in chosen),
        _missing(job),
        not meet,
        not any(chosen[rank].place for rank in inside),
        job.size,
    )


def _missing(job: Job) -> tuple[int, ...]:
    numbers = {rank.number for rank in job.ranks}
    return tuple(number for number in range(min(job.size, thresholds.MOST_RANKS)) if number not in numbers)


def _outside(facts: Facts, rank: Rank, times: RankTimes) -> Outside:
    kind = max(times.kinds, key=lambda kind: (times.kinds[kind], kind), default="")
    places = {frames: time for (of, frames), time in times.places.items() if of == kind}
    frames = max(places, key=lambda frames: (places[frames], frames), default=())
    thread = next(iter(standing_for(facts, rank.pid)), None)
    if thread is None:
        return Outside(rank, kind, times.share(kind), frames)
    place = doing(facts, thread).place
    return Outside(
        rank, kind, times.share(kind), frames, chain_of(facts, thread), interrupted_in(place.stack) if place else ()
    )


def polling_ranks(verdicts: Iterable[Verdict]) -> frozenset[int]:
    """Ranks that stand in an operation, and poll there."""
    details = (each.detail for each in verdicts if isinstance(each.detail, StuckRanks))
    return frozenset(each.rank.pid for detail in details if detail.polls for each in detail.inside)


def over_threads(verdicts: list[Verdict], _facts: Facts) -> list[Verdict]:
    """Drops verdicts on these ranks that tell less, and those on what holds a rank up of which the sentence tells."""
    pids = frozenset(pid for each in verdicts if each.rule == RULE for pid in each.pids)
    found = (each.detail for each in verdicts if isinstance(each.detail, StuckRanks))
    told = {rank.rank.pid for detail in found for rank in detail.outside[: thresholds.RANKS_OUTSIDE]}
    return [each for each in verdicts if not _tells_less(each, pids, told)]


def _tells_less(verdict: Verdict, ranks: frozenset[int], told: set[int]) -> bool:
    """``told``: ranks of which the sentence says what their main threads do."""
    if not verdict.pids or not verdict.pids <= ranks:
        return False
    if verdict.rule in LESS:
        return True
    threads = verdict.finding.threads if verdict.finding else ()
    return verdict.rule == held_up.RULE and verdict.pids <= told and all(pid == tid for pid, tid in threads)
