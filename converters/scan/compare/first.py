"""The first sentence of a comparison: who spends more time than before, how much, and in what."""

from __future__ import annotations

from collections.abc import Iterable

from ...base.text import printable
from ...base.units import plural
from ...facts import thresholds
from ...phrases import jobs
from ...rules.finding import CPU
from ...rules.rank_states import RUNNABLE, RUNNING
from ...rules.verdict import CORES, IDLE, UNCLEAR
from . import steps
from .changes import Change
from .comparing import Comparison
from .judgement import verdict

_DOES = {
    **jobs.DOES,
    CPU: jobs.DOES[RUNNING],
    CORES: jobs.DOES[RUNNABLE],
    IDLE: "with nothing to do",
    UNCLEAR: "in what is not known",
}


def answer(comparison: Comparison) -> str:
    """The first sentences, escaped."""
    if step := comparison.first_step:
        return steps.sentence(step)
    if not min(comparison.intervals):
        side = "before" if not comparison.intervals[0] else "after"
        return f"There is nothing to compare: what is {side} has no slices of time, as captures of trace-scan have."
    nothing = "Nothing takes more time than before, beyond the noise between runs."
    if not comparison.judged:
        nothing = f"Nothing takes {thresholds.COMPARED_LEAST:g} s more of each second than before."
    first = comparison.first
    if first is None:
        less = _least(comparison.told)
        return nothing + (f" {_sentence(less)}" if less else "")
    less = _least(each for each in comparison.told if each.key[:2] == first.key[:2])
    return _sentence(first) + (f" {_instead(less)}" if less else "")


def caveat(comparison: Comparison) -> str:
    """Sentence on what few runs cannot tell, and what to do; "" if there are enough for the first sentence."""
    step = comparison.first_step
    one, other = (len(step.before.means), len(step.after.means)) if step else comparison.sliced
    least = int(thresholds.COMPARED_RUNS)
    if min(one, other) >= least or not max(one, other):
        return ""
    have = "one run on each side" if one == other == 1 else f"{plural(one, 'run')} before and {other} after"
    lists = (",".join(f"{side}{i + 1}" for i in range(least)) for side in ("A", "B"))
    return (
        f"With {have} nobody can tell a change from the noise between runs: take at least {least} runs of each, then "
        f"trace-scan --compare {' '.join(lists)}"
    )


def _least(changes: Iterable[Change]) -> Change | None:
    """The largest decrease that is no idling. None without any."""
    return next((each for each in changes if each.difference < 0 and not each.is_idle), None)


def _sentence(each: Change) -> str:
    """``In each second, train (rank 3) is 0.30 ± 0.01 s longer waiting for a lock in take (0.10 → 0.40 s, all its
    threads together): differs (p = 0.00041).``"""
    told = verdict(each.chance, is_change=each.is_change)
    return (
        f"In each second, {who(each.key.process, each.key.rank)} is {_amount(each)} {_does(each)} "
        f"({each.before.rate:.2f} → {each.after.rate:.2f} s, all its threads together)"
        f"{f': {told}' if told else ''}."
    )


def _instead(each: Change) -> str:
    return f"It is {_amount(each)} {_does(each)}."


def _amount(each: Change) -> str:
    margin = f" ± {each.welch.margin:.2f}" if each.welch else ""
    return f"{abs(each.difference):.2f}{margin} s {'longer' if each.difference > 0 else 'shorter'}"


def _does(each: Change) -> str:
    where = place(each.key.frames, each.key.kernel)
    return printable(_DOES.get(each.key.kind, each.key.kind)) + (f" in {where}" if where else "")


def place(frames: Iterable[str], kernel: str) -> str:
    """``main → save │ folio_wait_bit``, escaped; "" if it is not known."""
    return " → ".join(map(printable, frames)) + (f" │ {printable(kernel)}" if kernel else "")


def who(process: str, rank: int | None) -> str:
    """``train (rank 3)``, escaped."""
    return printable(process) if rank is None else f"{printable(process)} (rank {rank})"
