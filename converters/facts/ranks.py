"""Names of processes that are ranks of a job."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..model import Profile
from ..model.ranks import rank_of
from .identity import shown_id


def ranks_of(profile: Profile) -> dict[int, int]:
    """The ranks of its processes, by (own) pid; of others, nothing is known."""
    found = {process.pid: rank_of(process.ranks) for process in profile.processes if process.ranks}
    return {pid: rank for pid, rank in found.items() if rank is not None}


def named(pids: Collection[int], ranks: Mapping[int, int]) -> str:
    """``rank 0``, ``ranks 1-7``, ``ranks 0, 2``; "" if one of these processes is none."""
    if not pids or not all(pid in ranks for pid in pids):
        return ""
    numbers = sorted({ranks[pid] for pid in pids})
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
