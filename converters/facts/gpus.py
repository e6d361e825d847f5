"""GPUs and the traced processes that have them open, by the minors of their devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from ..model.ranks import GPU
from .facts import Facts
from .jobs import Job, Rank

_DIGITS = 4


class GpuUse(NamedTuple):
    """A GPU, and who has its device open."""

    minor: int
    ranks: tuple[Rank, ...]
    """Ranks of jobs, by job and number."""
    others: tuple[int, ...]
    """Processes that are no ranks: workers of ranks, monitors, other programs."""


def gpus_of(facts: Facts, jobs: Sequence[Job]) -> tuple[GpuUse, ...]:
    """All GPUs that a traced process has open, by minor."""
    ranks = {rank.pid: rank for job in jobs for rank in job.ranks}
    users: dict[int, list[int]] = defaultdict(list)
    for pid, labels in facts.labels.items():
        for minor in _minors(labels.get(GPU, "")):
            users[minor].append(pid)
    found = []
    for minor, pids in sorted(users.items()):
        its = tuple(ranks[pid] for pid in ranks if pid in pids)
        found.append(GpuUse(minor, its, tuple(sorted(pid for pid in pids if pid not in ranks))))
    return tuple(found)


def without_gpu(jobs: Sequence[Job]) -> tuple[Rank, ...]:
    """Ranks that have no GPU open, of jobs in which others have one."""
    return tuple(rank for job in jobs if any(each.gpus for each in job.ranks) for rank in job.ranks if not rank.gpus)


def are_usual(gpus: Sequence[GpuUse], jobs: Sequence[Job]) -> bool:
    """Whether nothing is to be told: one rank has each GPU, nobody else has, and no rank has none or several."""
    one_each = all(len(each.ranks) <= 1 and len(each.ranks) + len(each.others) <= 1 for each in gpus)
    held = [rank.pid for each in gpus for rank in each.ranks]
    return one_each and len(held) == len({*held}) and not without_gpu(jobs)


def _minors(text: str) -> list[int]:
    """The numbers in ``0,1``; those that are none, in a file that was changed, are left out."""
    parts = text.split(",")
    return [int(part) for part in parts if part.isascii() and part.isdigit() and len(part) <= _DIGITS]
