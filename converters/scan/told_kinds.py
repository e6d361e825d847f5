"""Kinds of verdicts that tell of a process what the first sentence tells of it.

That is about those that are held up, those that keep them waiting, and those that wait for either.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection

from ..facts import thresholds
from ..facts.identity import kernel_id
from ..facts.wait_kinds import PEER
from ..model.waits_for import THREAD, WaitGraph
from ..rules.verdict import Verdict


def told_kinds(first: Verdict | None, graph: WaitGraph | None) -> dict[int, frozenset[str]]:
    """Kinds of verdicts, or of waits, that tell of each process that ``first`` concerns, by the kernel's id."""
    if first is None or first.finding is None:
        return {}
    found: dict[int, set[str]] = defaultdict(set)
    for pid in first.finding.pids:
        found[kernel_id(pid)].add(first.kind)
    if first.cause:
        for pid in first.cause.pids:
            found[kernel_id(pid)].add(first.cause.kind)
    if graph:
        for pid in _victims(graph, frozenset(found)):
            found[pid].add(PEER)
    return {pid: frozenset(kinds) for pid, kinds in found.items()}


def _victims(graph: WaitGraph, of: Collection[int]) -> list[int]:
    """Processes for which most of the waiting that others end is ended by ``of``."""
    by_others: Counter[int] = Counter()
    by_these: Counter[int] = Counter()
    for (victim, end), time in graph.ends.items():
        if end.kind == THREAD and end.pid != victim.pid:
            by_others[victim.pid] += time
            by_these[victim.pid] += time if end.pid in of else 0
    return [pid for pid, time in by_these.items() if 0 < thresholds.BLAMED * by_others[pid] <= time and pid not in of]
