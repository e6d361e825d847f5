"""Places of processes in their jobs: the rank that each is, and how late it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...rules.rank_states import RankStates


class PlaceInJob(NamedTuple):
    """Place of a process that is a rank."""

    number: int
    """Number of the rank."""
    ranks: int
    """Number of the job's ranks that were traced."""
    late: float | None
    """Time of its own, in which it waits neither for other ranks nor for the GPU, less the median of all ranks: as a
    share of its time, below 0 for a rank that waits for others. None where there is no median, see `RankStates.bar`."""


def places_in_jobs(jobs: Iterable[RankStates]) -> dict[int, PlaceInJob]:
    """Places by pid, as in the facts. Workers of a rank, and processes without a job, have none."""
    found = {}
    for states in jobs:
        middle = bar[0] if (bar := states.bar()) else None
        for rank, times in zip(states.job.ranks, states.times, strict=True):
            late = times.own - middle if middle is not None and times.wall else None
            found[rank.pid] = PlaceInJob(rank.number, len(states.job.ranks), late)
    return found
