from __future__ import annotations

import pytest
from stallscope.converters.model.asked_values import AskedValues, bounds


@pytest.mark.parametrize(
    ("bucket", "found"),
    [(0, (0, 0)), (1, (1, 1)), (2, (2, 3)), (-1, (-1, -1)), (-3, (-7, -4)), (64, (1 << 63, (1 << 64) - 1))],
)
def test_bounds(bucket: int, found: tuple[int, int]) -> None:
    assert bounds(bucket) == found


def test_the_mean() -> None:
    assert AskedValues("sum", "n", "f", "lib", 4, -10).mean == -2.5
    assert AskedValues("sum", "n", "f", "lib", 0, 0).mean == 0
