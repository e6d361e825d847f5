from __future__ import annotations

import pytest
from stallscope.converters.scan.compare.statistic import holm, margin, rank_sum


def test_rank_sum_of_separate_groups() -> None:
    """R: wilcox.test(1:10, 11:20, exact=FALSE) has p = 0.0001827."""
    assert rank_sum(range(1, 11), range(11, 21)) == pytest.approx(0.0001827, rel=1e-3)
    assert rank_sum([], [1.0]) == rank_sum([2.0, 2.0], [2.0]) == 1


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


def test_margin() -> None:
    assert margin([1.0, 3.0], [5.0, 5.0]) == pytest.approx(2.0)
    assert margin([1.0], [2.0]) == 0
