from __future__ import annotations

from math import atan, pi, sqrt

import pytest
from stallscope.converters.scan.compare.statistic import (
    both_tails,
    holm,
    incomplete_beta,
    mean,
    quantile,
    welch,
)

TABLE = {
    0.05: {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 10: 2.228, 20: 2.086, 30: 2.042, 120: 1.980},
    0.01: {1: 63.657, 2: 9.925, 3: 5.841, 4: 4.604, 5: 4.032, 10: 3.169, 20: 2.845, 30: 2.750, 120: 2.617},
    0.001: {2: 31.599, 3: 12.924, 4: 8.610, 5: 6.869, 10: 4.587, 20: 3.850, 30: 3.646, 120: 3.373},
}
"""Values of t by p, two-sided, and degrees of freedom, from the table of NIST's e-Handbook of Statistical Methods
(1.3.6.7.2: the columns 0.975, 0.995 and 0.9995)."""
CASES = [(p, freedom, t) for p, values in TABLE.items() for freedom, t in values.items()]


@pytest.mark.parametrize(("p", "freedom", "t"), CASES)
def test_published_values(p: float, freedom: int, t: float) -> None:
    assert both_tails(t, freedom) == pytest.approx(p, rel=0.003)
    assert quantile(p, freedom) == pytest.approx(t, abs=0.0006)


@pytest.mark.parametrize("t", [0, 1e-3, 0.1, 1, 5, 1e2, 1e4])
def test_closed_forms(t: float) -> None:
    """Student's t of 1 degree of freedom is Cauchy's distribution; that of 2 is algebraic."""
    assert both_tails(t, 1) == pytest.approx(1 - 2 / pi * atan(t), abs=1e-12)
    assert both_tails(t, 2) == pytest.approx(1 - t / sqrt(2 + t * t), abs=1e-12)


@pytest.mark.parametrize("x", [0.001, 0.2, 0.5, 0.77, 0.999])
def test_incomplete_beta(x: float) -> None:
    """I_x(1, b) and I_x(a, 1) are powers; I_x(2, 3) is a polynomial; on both sides of where the fraction is turned."""
    assert incomplete_beta(x, 1, 4.5) == pytest.approx(1 - (1 - x) ** 4.5)
    assert incomplete_beta(x, 3.5, 1) == pytest.approx(x**3.5)
    assert incomplete_beta(x, 2, 3) == pytest.approx(x * x * (6 - 8 * x + 3 * x * x))
    assert incomplete_beta(x, 800, 900) == pytest.approx(1 - incomplete_beta(1 - x, 900, 800), abs=1e-12)


def test_ends() -> None:
    assert [incomplete_beta(x, 2, 0.5) for x in (0, 1)] == [0, 1]
    assert both_tails(1e200, 4) == 0


def test_welch() -> None:
    """Data of Student (Biometrika 6, 1908: hours of sleep), of which R's t.test() says t = -1.8608, df = 17.776,
    p-value = 0.07939."""
    one = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    two = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    made = welch(one, two)
    assert made.chance == pytest.approx(0.07939, abs=0.00001)
    assert made.freedom == pytest.approx(17.776, abs=0.001)
    assert (mean(two) - mean(one)) / made.error == pytest.approx(1.8608, abs=0.0001)
    assert made == welch(two, one)


def test_groups_of_different_sizes_have_the_freedom_of_the_smaller() -> None:
    assert welch([1.0, 2.0, 3.0], [7.0, 8.0, 9.0, 10.0]).freedom == 2


def test_margin() -> None:
    """Variances of 1, 3 runs of each: 4 degrees of freedom, and an error of sqrt(2/3)."""
    made = welch([1.0, 2.0, 3.0], [7.0, 8.0, 9.0])
    assert made.freedom == pytest.approx(4)
    assert made.margin == pytest.approx(2.776 * sqrt(2 / 3), abs=0.001)


def test_a_side_without_spread_does_not_lend_its_freedom() -> None:
    assert welch([1.0, 1.0, 1.0], [7.0, 8.0, 9.0]).freedom == pytest.approx(2)


def test_values_without_spread() -> None:
    assert welch([1.0, 1.0], [1.0, 1.0]).chance == 1
    assert welch([1.0, 1.0], [2.0, 2.0]).chance == 0
    assert welch([1.0, 1.0], [2.0, 2.0]).margin == 0


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []
