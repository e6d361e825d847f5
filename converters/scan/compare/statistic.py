"""Statistics of few, skewed values: whether two groups differ by more than noise."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence


def rank_sum(before: Sequence[float], after: Sequence[float]) -> float:
    """Two-sided p of the test of Mann and Whitney, by its normal approximation with corrections for ties and for
    continuity. 1 if a group is empty or all values are equal."""
    n, m = len(before), len(after)
    values = sorted([*before, *after])
    counts = Counter(values)
    mean_rank: dict[float, float] = {}
    seen = 0
    for value, number in sorted(counts.items()):
        mean_rank[value] = seen + (number + 1) / 2
        seen += number
    total = n + m
    if not n or not m or len(counts) == 1:
        return 1.0
    u = sum(mean_rank[value] for value in after) - m * (m + 1) / 2
    ties = sum(number**3 - number for number in counts.values()) / (total * (total - 1))
    deviation = math.sqrt(n * m / 12 * (total + 1 - ties))
    z = max(abs(u - n * m / 2) - 0.5, 0) / deviation
    return math.erfc(z / math.sqrt(2))


def holm(chances: Sequence[float]) -> list[float]:
    """The p values, corrected for their number by the method of Holm."""
    order = sorted(range(len(chances)), key=lambda i: chances[i])
    corrected = [1.0] * len(chances)
    worst = 0.0
    for place, i in enumerate(order):
        worst = max(worst, min(1.0, chances[i] * (len(chances) - place)))
        corrected[i] = worst
    return corrected


def mean(values: Sequence[float]) -> float:
    """0 without any."""
    return sum(values) / len(values) if values else 0.0


def margin(before: Sequence[float], after: Sequence[float]) -> float:
    """Two standard errors of the difference of the means; 0 for groups of less than two values."""
    return 2 * math.sqrt(_error(before) + _error(after))


def _error(values: Sequence[float]) -> float:
    n = len(values)
    if n < 2:
        return 0.0
    middle = mean(values)
    return sum((value - middle) ** 2 for value in values) / (n - 1) / n
