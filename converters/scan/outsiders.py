"""Processes outside of a job that its ranks wait for in calls: monitors, and neighbours on the same devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ..base.units import duration, plural, share
from ..facts import thresholds
from ..facts.jobs import Job
from ..summary.sharing import Shared


class _Team(NamedTuple):
    """Processes that belong together."""

    ranks: frozenset[int]
    inside: frozenset[int]
    """Processes of the job: its ranks, their workers, and ranks that may belong to any job."""
    others: frozenset[int]
    """Ranks of other jobs."""


def outsiders(shared: Sequence[Shared], trace: int, jobs: Sequence[Job] = ()) -> tuple[str, ...]:
    """A sentence on each process that is outside of a job and is inside of a call, and the next to return, while the
    job's ranks wait in it. ``trace``: ns. Unescaped (hostile).

    ``jobs``: those of `facts.jobs`; without any, all processes whose environment tells a rank are one: a child of a
    rank has its environment and is a rank, too. Without ranks nobody is known to be outside.
    """
    return tuple(told for each in shared for team in _teams(each, jobs) if (told := _outsider(each, trace, team)))


def _teams(each: Shared, jobs: Sequence[Job]) -> list[_Team]:
    told = frozenset(each.ranks)
    if not jobs:
        return [_Team(told, told, frozenset())]
    members = [job.pids.union(*(rank.workers for rank in job.ranks)) for job in jobs]
    every = frozenset().union(*members)
    unknown = told - every
    return [_Team(job.pids, its | unknown, every - its) for job, its in zip(jobs, members, strict=True)]


def _outsider(each: Shared, trace: int, team: _Team) -> str:
    waits = {pair: ns for pair, ns in each.call.waits.items() if pair[0] in team.ranks}
    waiters = {waiter for waiter, _ in waits}
    whole = sum(waits.values())
    held: Counter[int] = Counter()
    for (_, holder), ns in waits.items():
        if holder not in team.inside:
            held[holder] += ns
    if not held or whole < thresholds.OUTSIDER_WAITS * trace * len(waiters):
        return ""
    pid, time = max(held.items(), key=lambda entry: (entry[1], -entry[0]))
    if time < thresholds.OUTSIDER * whole:
        return ""
    call = f"{each.call.name} of {each.call.device}"
    outside = "of another job" if pid in team.others else "no rank"
    return (
        f"{each.who(pid)}, which is {outside}, is inside {call} and the next to return for {share(time, whole)} of the "
        f"time for which {plural(len(waiters), 'rank')} wait in it: {duration(time)}."
    )
