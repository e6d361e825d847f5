"""Names of processes that are ranks of a job."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ..model import Profile
from ..model.collectives import UNKNOWN, Collectives
from ..model.origins import ProcessOrigin
from ..model.ranks import rank_of
from .identity import shown_id


def ranks_of(profile: Profile) -> dict[int, int]:
    """The ranks of its processes, by (own) pid, without what a rank has started itself; of others, nothing is known."""
    found = {process.pid: rank_of(process.ranks) for process in profile.processes if process.ranks}
    ranks = {pid: rank for pid, rank in found.items() if rank is not None}
    programs = {each.pid: each.executable for each in profile.origins}
    workers = {each.pid for each in profile.origins if _is_worker(each, ranks, programs)}
    return {pid: rank for pid, rank in ranks.items() if pid not in workers}


def _is_worker(origin: ProcessOrigin, ranks: Mapping[int, int], programs: Mapping[int, str]) -> bool:
    """Whether a process has its rank from one of the same program that has started it: a worker of its loader."""
    above = (each.pid for each in origin.ancestors if programs.get(each.pid) == origin.executable)
    rank = ranks.get(origin.pid)
    return rank is not None and any(ranks.get(pid) == rank for pid in above)


def numbers(ranks: Mapping[int, int], communicators: Iterable[Collectives]) -> dict[int, int]:
    """``ranks`` by pid, and those of processes that have one as members of communicators only: in their largest one."""
    found: dict[int, int] = {}
    for of in sorted(communicators, key=lambda each: len(each.ranks)):
        found |= {each.pid: each.rank for each in of.ranks if each.rank != UNKNOWN}
    return {**found, **ranks}


def named(pids: Collection[int], ranks: Mapping[int, int]) -> str:
    """``rank 0``, ``ranks 1-7``, ``ranks 0, 2``; "" if one of these processes is none."""
    if not pids or not all(pid in ranks for pid in pids):
        return ""
    return in_words({ranks[pid] for pid in pids})


def in_words(numbers: Collection[int]) -> str:
    """``rank 0``, ``ranks 1-7``, ``ranks 0, 2``"""
    numbers = sorted(numbers)
    texts: list[str] = []
    first = 0
    for i in range(1, len(numbers) + 1):
        if i == len(numbers) or numbers[i] != numbers[i - 1] + 1:
            run = numbers[first:i]
            texts += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run)
            first = i
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(texts)}"


def who(process: str, pid: int, ranks: Mapping[int, int]) -> str:
    """``rank 3 (pid 4711)``, or ``train (4711)``. ``process`` is hostile, and so is the result."""
    return f"rank {ranks[pid]} (pid {shown_id(pid)})" if pid in ranks else f"{process} ({shown_id(pid)})"
