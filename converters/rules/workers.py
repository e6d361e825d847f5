"""Threads that are no main threads, and do not only wait, wait for somebody else to end it."""

from __future__ import annotations

from collections import defaultdict

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.wait_causes import effect_cause
from ..facts.wait_sums import Place, Thread
from .causes import cause_of, without
from .finding import Key, by_time, findings
from .for_others import KINDS, saves
from .verdict import Verdict, kind_of

RULE = "workers"


def find(facts: Facts) -> list[Verdict]:
    """The longest wait of threads of one name, with what those do who keep them waiting."""
    groups: dict[Key, dict[Thread, list[Place]]] = defaultdict(dict)
    for thread in facts.own:
        quiet = facts.is_quiet(thread) or facts.is_idle(thread)
        if thread[0] == thread[1] or quiet or thread[0] not in facts.at_work:
            continue
        for place in facts.waits_of(thread):
            if place.kind in KINDS:
                key = *effect_cause(facts.process_of(thread), place), facts.name_of(thread)
                groups[key].setdefault(thread, []).append(place)
    longest = min(findings(facts, KINDS, groups), key=by_time, default=None)
    if longest is None:
        return []
    cause = cause_of(facts, longest)
    if cause:
        longest = without(facts, longest, cause)
    confidence = thresholds.ASIDE_SAVES * saves(longest.kind)
    return [Verdict(RULE, kind_of(longest), longest.time, confidence, longest.pids, longest, cause, is_effect=True)]
