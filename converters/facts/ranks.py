"""Names of processes that are ranks of a job."""

from __future__ import annotations

from collections.abc import Mapping

from ..model import Profile
from ..model.ranks import rank_of
from .identity import shown_id


def ranks_of(profile: Profile) -> dict[int, int]:
    """The ranks of its processes, by (own) pid; of others, nothing is known."""
    found = {process.pid: rank_of(process.ranks) for process in profile.processes if process.ranks}
    return {pid: rank for pid, rank in found.items() if rank is not None}


def who(process: str, pid: int, ranks: Mapping[int, int]) -> str:
    """``rank 3 (pid 4711)``, or ``train (4711)``. ``process`` is hostile, and so is the result."""
    return f"rank {ranks[pid]} (pid {shown_id(pid)})" if pid in ranks else f"{process} ({shown_id(pid)})"
