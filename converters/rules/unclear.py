"""Unknown places of threads for much of the time: stacks or events were lost."""

from __future__ import annotations

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.wait_functions import HELD_BY_ENGINE
from ..facts.wait_kinds import UNKNOWN
from ..facts.wait_sums import Thread
from .verdict import UNCLEAR, Verdict

RULE = "unclear"


def find(facts: Facts) -> list[Verdict]:
    """Finds at most one verdict; its detail is the share of the threads' time, without those that only wait for
    work."""
    unknown = sum(_unknown(facts, thread) for thread in facts.own if not facts.is_idle(thread))
    if not 0 < thresholds.UNCLEAR * facts.active_wall <= unknown:
        return []
    return [Verdict(RULE, UNCLEAR, unknown, 1, frozenset(), detail=unknown / facts.active_wall)]


def _unknown(facts: Facts, thread: Thread) -> int:
    """Time in ns of a thread in places that are not known, as far as its account has it: the threads' time is that of
    accounts, and some, of processes out of sight, have none."""
    found = sum(
        total.time
        for place, total in facts.waits_of(thread).items()
        if place.kind == UNKNOWN and place.site.frames != (HELD_BY_ENGINE,)
    )
    return min(found, facts.threads[thread].wall)
