"""Whether a difference of runs is more than the noise between runs, and the words for that."""

from __future__ import annotations

from collections.abc import Sequence

from ...facts import thresholds

_LEAST = 0.0001
"""Probability below which the number does not matter: few runs, whose distribution is not known, do not show it."""


def differs(chance: float | None) -> bool:
    """Whether a difference is more than noise that has this probability, corrected, without a change."""
    return chance is not None and chance <= thresholds.COMPARED_CHANCE


def overlap(before: Sequence[float], after: Sequence[float]) -> bool:
    """Whether some run of a side has no more, or no less, than one of the other side: so it is with most differences
    that are noise. False for one run of each, which cannot show that."""
    if min(len(before), len(after)) < 2:
        return False
    return min(after) <= max(before) and min(before) <= max(after)


def verdict(chance: float | None, *, is_change: bool) -> str:
    """``differs (p = 0.00041)`` or ``noise (p = 0.62)``; "" if there was no test."""
    return "" if chance is None else f"{'differs' if is_change else 'noise'} ({probability(chance)})"


def probability(chance: float) -> str:
    """``p = 0.00041``; very small ones, which no few runs can show, as ``p < 0.0001``."""
    return f"p < {_LEAST:g}" if chance < _LEAST else f"p = {chance:.2g}"
