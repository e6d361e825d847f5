"""Takers of the cores while threads waited for one: a quota, their own process, others that were traced, or unknown."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ..base.text import json_text
from ..facts import thresholds
from ..facts.contention import Contention
from ..facts.groups import by_name, others_may_have, users_of_cores
from ..model.neighbours import Neighbour
from ..rules.quota import throttles

QUOTA, TRACED, OTHERS, UNCLEAR = "quota", "traced", "others", "unclear"
"""A quota stopped them; processes that were traced had the cores; others, which were not traced; one or the other."""


@dataclass(frozen=True, slots=True)
class Takers:
    """Reason why cores were not free."""

    kind: str
    names: tuple[tuple[str, float], ...] = ()
    """The processes (hostile) that used most of these cores' time, with the average number of cores."""
    cores: int = 0
    """Number of cores that the waiting threads may use."""
    cgroup: str = ""
    """The control group (hostile) whose quota stopped them."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "kind": self.kind,
            "processes": [{"process": json_text(name), "cores": round(used, 4)} for name, used in self.names],
            "cores": self.cores,
            "cgroup": json_text(self.cgroup),
        }


class Cores:
    """Knows which processes used the cores."""

    def __init__(
        self, processes: Sequence[Contention], neighbours: Sequence[Neighbour] = (), *, whole_host: bool
    ) -> None:
        self._processes = processes
        self._by_pid = {pid: process for process in processes for pid in process.pids}
        self._groups = by_name(processes)
        self._neighbours = neighbours
        self._whole_host = whole_host

    def takers(self, pids: Collection[int], time: int, wall: int, threads: int) -> Takers | None:
        """Takers that kept ``threads`` threads of these processes waiting for a core, ``time`` of their ``wall`` ns.
        None: it is too little to tell, or nothing is known."""
        waiting = [self._by_pid[pid] for pid in pids if pid in self._by_pid]
        cores = frozenset().union(*(process.cpus for process in waiting))
        duration = max((process.duration for process in waiting), default=0)
        if not cores or not duration or time < thresholds.TAKERS_TELL * wall:
            return None
        for process in waiting:
            for limit in process.limits:
                if throttles(limit, duration):
                    return Takers(QUOTA, cores=len(cores), cgroup=limit.cgroup)
        used = sorted(((_used(group, cores) / duration, _name(group)) for group in self._groups), reverse=True)
        total, much = sum(number for number, _ in used), thresholds.TAKER * len(cores)
        names = tuple((name, number) for number, name in used[: thresholds.PROCESSES_NAMED] if number >= much)
        if self._whole_host or total >= thresholds.TRACED_HAVE_CORES * len(cores):
            return Takers(TRACED, names, len(cores)) if names else None
        wanted = sum(process.on_cpu + process.runnable for process in waiting) / duration
        alone = threads <= len(cores) and total < thresholds.CORES_TAKEN * len(cores)
        crowded = wanted >= thresholds.CROWDED * len(cores) and total < thresholds.CORES_TAKEN * len(cores)
        if not others_may_have(self._neighbours, duration, cores, len(cores) - total):
            return None
        others = users_of_cores(self._neighbours, duration, cores)
        named = tuple((name, used) for name, used in others[: thresholds.PROCESSES_NAMED] if used >= much)
        return Takers(OTHERS if alone or crowded else UNCLEAR, named, len(cores))


def _used(group: Contention, cores: frozenset[int]) -> float:
    """ns on these cores: all of its cores alike."""
    return group.on_cpu * len(group.cpus & cores) / len(group.cpus) if group.cpus else 0


def _name(group: Contention) -> str:
    return f"{group.processes:,} × {group.process}" if group.processes > 1 else group.process


def sentence(takers: Takers) -> str:
    """Text of a row. Names in it are unescaped (hostile)."""
    if takers.kind == QUOTA:
        return f"stopped by the quota of control group {takers.cgroup}"
    if takers.kind == TRACED:
        named = ", ".join(f"{name} {used:.2f}" for name, used in takers.names)
        return f"cores had by {named} of {takers.cores}"
    if takers.names:
        named = ", ".join(f"{name} {used:.2f}" for name, used in takers.names)
        traced = "" if takers.kind == OTHERS else "by those that were traced and "
        return f"cores had {traced}by {named} of {takers.cores}, not traced"
    if takers.kind == OTHERS:
        return "cores had by processes that were not traced (top shows them)"
    return "cores had by others at a time, traced or not (top shows all)"
