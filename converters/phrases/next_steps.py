"""Words for what a recommended command shows."""

from __future__ import annotations

from ..model import next_step
from ..model.next_step import NextStep

_WORDS = {
    next_step.WHO_WAKES: "who wakes whom, and when",
    next_step.WHO_ENDS: "who ends these waits",
    next_step.WHO_ENDS_IN_CALLS: "who ends these waits, inside such a call or not",
    next_step.WHAT_ENDERS_DO: "what those do who end these waits",
    next_step.WHAT_OTHERS_DO: "what all others do meanwhile: nobody ended these waits",
    next_step.WHAT_HOLDER_DOES: "what the process does that has the lock",
    next_step.PATH: "what it waits for, step by step",
    next_step.ALL_THAT_RUNS: "all that runs, as a flame graph",
    next_step.RUNS_TOO: "what runs on the cores, too",
    next_step.HAS_CORES: "what else has the cores",
    next_step.HOW_OFTEN: "how often it is called, and how long each call takes",
    next_step.WHICH_IOCTLS: "which ioctls take so long, and on which devices",
    next_step.WHOLE_STACKS: "whole stacks",
    next_step.ALL_RANKS: "all ranks of this host: one may keep the others waiting",
    next_step.WHAT_CULPRIT_RUNS: "what the process runs for which the others wait, as a flame graph",
    next_step.WHAT_CULPRIT_WAITS_FOR: "what the process waits for that keeps the others waiting, step by step",
    next_step.MISSING_RANK: "whole stacks of the rank that has not come",
    next_step.MISSING_WAITS_FOR: "what those do for whom the rank waits that has not come",
    next_step.RANKS_STAND: "whole stacks of the ranks that differ",
    next_step.LONGER: "a longer scan, while something is slow",
    next_step.REST: "where the rest of the time goes",
}


def tells(step: NextStep) -> str:
    """``who ends these waits``. Text of earlier versions' files stays as it is: hostile."""
    if step.tells == next_step.LEFT_OUT:
        whom = "process that was" if step.left_out == 1 else "processes that were"
        text = f"also {step.left_out:,} {whom} left out and ran meanwhile"
    else:
        text = _WORDS.get(step.tells, step.tells)
    return f"{text}; needs a module of its own: --stap-compile-only" if step.needs_module else text
