"""Some steps of a loop take much longer than the others, and have much of all steps' time.

The user asked for steps: it comes first.
"""

from __future__ import annotations

from ..facts.facts import Facts
from ..model.steps import Steps
from .verdict import SLOW_STEP, Verdict

RULE = "slow-step"


def find(facts: Facts) -> list[Verdict]:
    """One for each thread and function with such steps; the time is what they take more than as many others."""
    return [_verdict(steps, more) for steps in facts.steps if (more := _more(steps))]


def _more(steps: Steps) -> int:
    """ns; 0 if there are none."""
    slow = steps.slow
    return slow.spent.wall - slow.others.mean * slow.spent.count if slow else 0


def _verdict(steps: Steps, more: int) -> Verdict:
    return Verdict(RULE, SLOW_STEP, more, 1, frozenset((steps.pid,)), detail=steps)
