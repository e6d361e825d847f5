"""The longest wait of threads that are not idle: told if nothing else is significant."""

from __future__ import annotations

from collections import defaultdict

from ..facts.facts import Facts
from ..facts.wait_kinds import CORE, HALTED, UNKNOWN, WORK
from ..facts.wait_sums import Place, Thread
from .finding import Key, by_time, waiting
from .verdict import Verdict, kind_of

RULE = "longest"


def find(facts: Facts) -> list[Verdict]:
    """None if all that wait there did not move."""
    groups: dict[Key, dict[Thread, list[Place]]] = defaultdict(dict)
    for thread in facts.own:
        for place in facts.waits_of(thread):
            told = place.kind not in (CORE, UNKNOWN, WORK) and (place.kind == HALTED or not place.wait.nowhere)
            if told and not facts.is_idle(thread):
                key = facts.process_of(thread), place.kind, place.site.frames
                groups[key].setdefault(thread, []).append(place)
    found = [waiting(facts, str(key[1]), members, least=0) for key, members in groups.items()]
    longest = min((each for each in found if each), key=by_time, default=None)
    if longest is None or facts.pids_moving.isdisjoint(longest.pids):
        return []
    return [Verdict(RULE, kind_of(longest), longest.time, 0, longest.pids, longest)]
