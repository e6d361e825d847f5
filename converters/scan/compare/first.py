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
from .comparing import Change, Comparison

_DOES = {
    **jobs.DOES,
    CPU: jobs.DOES[RUNNING],
    CORES: jobs.DOES[RUNNABLE],
    IDLE: "with nothing to do",
    UNCLEAR: "in what is not known",
}


def answer(comparison: Comparison) -> str:
    """The first sentences, escaped."""
    if step := next((each for each in comparison.steps if each.is_told), None):
        return steps.sentence(step)
    if not comparison.judged:
        fewest = min(comparison.intervals)
        return (
            f"Change cannot be told from noise: {plural(fewest, 'interval')} on one side, at least "
            f"{int(thresholds.COMPARED_INTERVALS)} are needed."
        )
    first = comparison.first
    if first is None:
        less = _least(comparison.told)
        return "Nothing takes more time than before, beyond noise." + (f" {_sentence(less)}" if less else "")
    less = _least(each for each in comparison.told if each.key[:2] == first.key[:2])
    return _sentence(first) + (f" {_instead(less)}" if less else "")


def _least(changes: Iterable[Change]) -> Change | None:
    """The largest decrease that is no idling. None without any."""
    return next((each for each in changes if each.difference < 0 and each.key.kind != IDLE), None)


def _sentence(each: Change) -> str:
    """``In each second, train (rank 3) is 0.30 ± 0.01 s longer waiting for a lock in take (0.10 → 0.40 s, …).``"""
    return (
        f"In each second, {who(each.key.process, each.key.rank)} is {_amount(each)} {_does(each)} "
        f"({each.before:.2f} → {each.after:.2f} s, all its threads together)."
    )


def _instead(each: Change) -> str:
    return f"It is {_amount(each)} {_does(each)}."


def _amount(each: Change) -> str:
    longer = "longer" if each.difference > 0 else "shorter"
    return f"{abs(each.difference):.2f} ± {each.margin:.2f} s {longer}"


def _does(each: Change) -> str:
    where = place(each.key.frames, each.key.kernel)
    return printable(_DOES.get(each.key.kind, each.key.kind)) + (f" in {where}" if where else "")


def place(frames: Iterable[str], kernel: str) -> str:
    """``main → save │ folio_wait_bit``, escaped; "" if it is not known."""
    return " → ".join(map(printable, frames)) + (f" │ {printable(kernel)}" if kernel else "")


def who(process: str, rank: int | None) -> str:
    """``train (rank 3)``, escaped."""
    return printable(process) if rank is None else f"{printable(process)} (rank {rank})"
