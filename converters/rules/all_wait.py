"""All threads of a process wait for each other, and none moved: only a signal, or shared memory, can wake them."""

from __future__ import annotations

from collections import defaultdict

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.wait_kinds import LOCK, THREAD, WORK
from ..facts.wait_sums import Place, Thread
from .finding import waiting
from .verdict import DEADLOCK, Verdict

RULE = "all-wait"
_KINDS = (THREAD, LOCK, WORK)
"""Kinds of waits that only other threads of the process end."""


def find(facts: Facts) -> list[Verdict]:
    """One for each such process. The finding is of the threads of which it is not known that they wait for work."""
    threads: dict[int, list[Thread]] = defaultdict(list)
    for thread in facts.own:
        threads[thread[0]].append(thread)
    return [verdict for members in threads.values() if (verdict := _verdict(facts, members))]


def _verdict(facts: Facts, members: list[Thread]) -> Verdict | None:
    wanting = [each for each in members if not facts.is_idle(each)]
    several = len(wanting) >= thresholds.ALL_WAIT_THREADS
    if not several or not facts.are_still(members) or not all(_waits(facts, each) for each in members):
        return None
    places: dict[Thread, list[Place]] = {each: list(facts.waits_of(each)) for each in wanting}
    finding = waiting(facts, THREAD, places)
    if finding is None:
        return None
    confidence = thresholds.STUCK_BESIDE_WORK_SAVES if facts.at_work else 1
    return Verdict(RULE, DEADLOCK, finding.time, confidence, finding.pids, finding)


def _waits(facts: Facts, thread: Thread) -> bool:
    places = facts.waits_of(thread)
    return bool(places) and all(place.kind in _KINDS and not place.wait.nowhere for place in places)
