"""For much of the time it is not known where threads were: stacks or events were lost."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.wait_functions import HELD_BY_ENGINE
from ..facts.wait_kinds import UNKNOWN
from .verdict import UNCLEAR, Verdict

RULE = "unclear"


class Unclear(NamedTuple):
    """The detail of such a verdict."""

    share: float
    """Of the threads' time, without those that only wait for work."""
    why: tuple[str, ...]
    """What stands for it in stacks (``[lost]``), most time first."""


def find(facts: Facts) -> list[Verdict]:
    """At most one."""
    times: dict[str, int] = defaultdict(int)
    for thread in facts.own:
        for place, total in facts.waits_of(thread).items():
            if place.kind == UNKNOWN and not facts.is_idle(thread):
                times[place.site.frames[-1] if place.site.frames else ""] += total.time
    times.pop(HELD_BY_ENGINE, None)
    unknown = sum(times.values())
    if not 0 < thresholds.UNCLEAR * facts.active_wall <= unknown:
        return []
    why = tuple(name for name, _ in sorted(times.items(), key=lambda entry: (-entry[1], entry[0])) if name)
    detail = Unclear(unknown / facts.active_wall, why)
    return [Verdict(RULE, UNCLEAR, unknown, 1, frozenset(), detail=detail)]
