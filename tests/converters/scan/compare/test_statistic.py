from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb, sqrt
from statistics import NormalDist

import pytest
from stallscope.converters.scan.compare.statistic import holm, margin, rank_sum


def exact(before: Sequence[float], after: Sequence[float]) -> float:
    """Two-sided p by enumeration: the share of all ways to choose the ranks of ``before`` whose sum is as far from its
    mean as that found. Without ties."""
    values = sorted([*before, *after])
    total, n = len(values), len(before)
    middle = n * (total + 1) / 2
    found = abs(sum(values.index(each) + 1 for each in before) - middle)
    sums = [sum(chosen) for chosen in combinations(range(1, total + 1), n)]
    return sum(abs(each - middle) >= found for each in sums) / len(sums)


def test_enumeration_of_separate_groups() -> None:
    """Finds that 2 of the 12870 ways to choose 8 of 16 are as far apart."""
    assert exact(range(8), range(8, 16)) == 2 / comb(16, 8)


@pytest.mark.parametrize("shift", range(9))
def test_rank_sum_is_near_the_exact_one(shift: int) -> None:
    """Groups of 8, from mixed to apart, as small as they are judged. Where it matters, it errs towards noise."""
    before, after = [2.0 * i for i in range(8)], [2.0 * (i + shift) + 1 for i in range(8)]
    found, true = rank_sum(before, after), exact(before, after)
    assert found == pytest.approx(true, abs=0.01 if true > 0.05 else 0.004)
    assert found >= true or true > 0.05


def test_direction_does_not_matter() -> None:
    one, other = [1.0, 2.0, 3.0, 4.0, 6.0], [5.0, 7.0, 8.0, 9.0, 10.0]
    assert rank_sum(one, other) == pytest.approx(rank_sum(other, one))
    assert rank_sum(one, other) < rank_sum(one, [0.0, *other[1:]])


def test_ties_lower_the_deviation() -> None:
    """n = m = 4, all of a group equal: U = 0, its variance 16/12 (9 - 120/56), corrected by half for continuity."""
    z = 7.5 / sqrt(16 / 12 * (9 - 120 / 56))
    assert rank_sum([1.0] * 4, [2.0] * 4) == pytest.approx(2 * NormalDist().cdf(-z))


def test_nothing_to_rank() -> None:
    assert rank_sum([], [1.0]) == rank_sum([2.0, 2.0], [2.0]) == 1


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


def test_margin() -> None:
    assert margin([1.0, 3.0], [5.0, 5.0]) == pytest.approx(2.0)
    assert margin([1.0], [2.0]) == 0
