"""Statistics of the means of few runs: whether two groups of runs differ by more than runs of a group do.

Slices of one run are alike (slow phases, caches, neighbours), and runs of one job differ: only runs are independent of
each other. So one value of each run is all that is used here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

_TINY = 1e-300
"""Stands for 0 as a divisor, in the method of Lentz."""
_EXACT = 1e-14
"""Relative change of a continued fraction at which it has converged."""
_TERMS = 10_000
"""Terms of a continued fraction at most. It needs about the square root of the larger parameter."""
_HALVINGS = 64
"""Halvings of an interval that holds a quantile: more than a double has bits."""
_FARTHEST = 1e6
"""Quantile of Student's t that is not exceeded here: of 1 degree of freedom, one in 1.6 million is beyond."""
_OUTSIDE = 0.05
"""Share of cases in which the true difference is outside of a margin."""


class Welch(NamedTuple):
    """Difference of the means of two groups."""

    chance: float
    """Two-sided p: the probability of a difference as large without a change."""
    error: float
    """Standard error of the difference."""
    freedom: float
    """Degrees of freedom of Student's t."""

    @property
    def margin(self) -> float:
        """Half of the interval that holds the true difference in 95 % of cases."""
        return self.error * quantile(_OUTSIDE, self.freedom)


def welch(before: Sequence[float], after: Sequence[float]) -> Welch:
    """Welch's t test (Biometrika 34, 1947) of two groups of at least 2 values, which may have different variances. If
    no value differs from those of its group, any difference is certain.

    His degrees of freedom are too many where a group of three stands against a larger one: p of 0.001 is then found in
    up to 1 of 100 cases without a change. So groups of different sizes have those of the smaller one, which are never
    too many (Mickey and Brown, Ann. Math. Statist. 37, 1966)."""
    difference = abs(mean(after) - mean(before))
    errors = _squared_error(before), _squared_error(after)
    whole = sum(errors)
    if not whole:
        return Welch(0.0 if difference else 1.0, 0.0, 1.0)
    error, least = math.sqrt(whole), min(len(before), len(after)) - 1
    freedom = whole * whole / sum(each * each / least for each in errors) if len(before) == len(after) else least
    return Welch(both_tails(difference / error, freedom), error, freedom)


def mean(values: Sequence[float]) -> float:
    """0 without any."""
    return sum(values) / len(values) if values else 0.0


def _squared_error(values: Sequence[float]) -> float:
    """Square of the standard error of the mean of at least 2 values."""
    middle, n = mean(values), len(values)
    return sum((value - middle) ** 2 for value in values) / (n - 1) / n


def both_tails(t: float, freedom: float) -> float:
    """Probability that Student's t with so many degrees of freedom is as far from 0 as ``t``, on either side
    (Abramowitz and Stegun, 26.7.1 and 26.5.27)."""
    return incomplete_beta(freedom / (freedom + t * t), freedom / 2, 1 / 2)


def quantile(outside: float, freedom: float) -> float:
    """The t beyond which, on both sides together, is this part of Student's distribution."""
    low, high = 0.0, _FARTHEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if both_tails(middle, freedom) > outside else (low, middle)
    return high


def incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), for 0 ≤ x ≤ 1 and a, b > 0 (DLMF 8.17)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # where the fraction converges slowly: I_x(a, b) = 1 - I_{1-x}(b, a)
        return 1 - incomplete_beta(1 - x, b, a)
    log_factor = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(log_factor) / a / _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction 1 + d1/(1 + d2/(1 + …)) of DLMF 8.17.22, by the modified method of Lentz."""
    value = numerator = 1.0
    denominator = 0.0
    for term in range(1, _TERMS):
        m = term // 2
        top = -(a + m) * (a + b + m) if term % 2 else m * (b - m)
        part = top * x / ((a + term - 1) * (a + term))
        numerator = 1 + part / numerator or _TINY
        denominator = 1 / (1 + part * denominator or _TINY)
        value *= numerator * denominator
        if abs(numerator * denominator - 1) < _EXACT:
            break
    return value


def holm(chances: Sequence[float]) -> list[float]:
    """The p values, corrected for their number by the method of Holm (Scand. J. Statist. 6, 1979)."""
    order = sorted(range(len(chances)), key=lambda i: chances[i])
    corrected = [1.0] * len(chances)
    worst = 0.0
    for place, i in enumerate(order):
        worst = max(worst, min(1.0, chances[i] * (len(chances) - place)))
        corrected[i] = worst
    return corrected
