"""Unknown places of threads for much of the time: stacks or events were lost."""

from __future__ import annotations

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.wait_functions import HELD_BY_ENGINE
from ..facts.wait_kinds import UNKNOWN
from .verdict import UNCLEAR, Verdict

RULE = "unclear"


def find(facts: Facts) -> list[Verdict]:
    """Finds at most one verdict; its detail is the share of the threads' time, without those that only wait for
    work."""
    unknown = sum(
        total.time
        for thread in facts.own
        for place, total in facts.waits_of(thread).items()
        if place.kind == UNKNOWN and place.site.frames != (HELD_BY_ENGINE,) and not facts.is_idle(thread)
    )
    if not 0 < thresholds.UNCLEAR * facts.active_wall <= unknown:
        return []
    return [Verdict(RULE, UNCLEAR, unknown, 1, frozenset(), detail=unknown / facts.active_wall)]
