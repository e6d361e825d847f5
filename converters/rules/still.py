"""No thread of a process moved during the whole trace."""

from __future__ import annotations

from ..facts.facts import Facts
from .verdict import STILL, Verdict

RULE = "still"


def find(facts: Facts) -> list[Verdict]:
    """One for each process."""
    return [Verdict(RULE, STILL, 0, 0, frozenset((pid,))) for pid in sorted(facts.still_pids)]
