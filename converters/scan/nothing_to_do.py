"""Processes that wait for others, and are held up by nobody: shells that wait for their children, readers of pipes."""

from __future__ import annotations

from collections import Counter

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.for_ancestors import are_for_work
from ..facts.identity import kernel_id
from ..facts.wait_functions import STARTED
from ..facts.wait_kinds import CHILD, EVENTS, PEER, SLEEP, THREAD
from ..model.waits_for import THREAD as A_THREAD
from ..model.waits_for import WaitGraph
from ..rules.for_others import is_for_sleep
from ..rules.verdict import Verdict

_FOR_OTHERS = frozenset((CHILD, EVENTS, PEER, SLEEP, THREAD))
"""Kinds of waits in which a process may have nothing to do."""


def needed_pids(graph: WaitGraph, duration: int) -> frozenset[int]:
    """Processes for which others wait for a part of the trace that matters, by the kernel's ids."""
    times: Counter[int] = Counter()
    for (victim, end), time in graph.ends.items():
        if end.kind == A_THREAD and end.pid != victim.pid:
            times[end.pid] += time
    return frozenset(pid for pid, time in times.items() if time >= thresholds.NEEDED * duration)


def has_nothing_to_do(facts: Facts, verdict: Verdict, needed: frozenset[int]) -> bool:
    """Whether a process of a whole host only waits for others, hardly runs, and nobody waits for it: if it asks nobody
    for an answer, nothing is late. ``verdict``: that on the process by itself. ``needed``: see `needed_pids`."""
    finding = verdict.finding
    if finding is None or finding.kind not in _FOR_OTHERS or not needed.isdisjoint(map(kernel_id, finding.pids)):
        return False
    asks = any(place.wait.asks or place.wait.job not in ("", STARTED) for place in finding.places)
    return not asks and facts.are_slight(finding.threads)


def has_no_work(facts: Facts, verdict: Verdict, needed: frozenset[int]) -> bool:
    """Whether a process waits for work from a traced one that has started it, or for a child that sleeps, and nobody
    waits for it. ``verdict``, ``needed``: see `has_nothing_to_do`."""
    finding = verdict.finding
    if finding is None or not needed.isdisjoint(map(kernel_id, finding.pids)):
        return False
    return are_for_work(facts, finding.threads, finding.places) or is_for_sleep(facts, finding)
