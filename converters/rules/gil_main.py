"""A main thread waits for Python's interpreter lock for most of its time."""

from __future__ import annotations

from ..facts import thresholds
from ..facts.facts import Facts
from ..model.gil import GilThread, GilTimes
from .verdict import GIL, Verdict

RULE = "gil-main"


def find(facts: Facts) -> list[Verdict]:
    """The one that waits longest; its detail is a `GilShare`."""
    mains = [(main.time, each) for each in facts.gil if (main := main_of(each.gil))]
    found = [(time, each) for time, each in mains if time >= thresholds.GIL_MAIN * each.main > 0]
    if not found:
        return []
    time, share = max(found, key=lambda entry: (entry[0], -entry[1].gil.pid))
    return [Verdict(RULE, GIL, time, 1, frozenset((share.gil.pid,)), detail=share)]


def main_of(gil: GilTimes) -> GilThread | None:
    """The waits of the main thread."""
    return next((thread for thread in gil.waiters if thread.tid == gil.pid), None)
