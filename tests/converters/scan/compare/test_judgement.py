from __future__ import annotations

import pytest
from stallscope.converters.scan.compare.judgement import differs, overlap, verdict


@pytest.mark.parametrize(
    ("chance", "is_change", "told"),
    [
        (None, False, ""),
        (0.000412, True, "differs (p = 0.00041)"),
        (1e-12, True, "differs (p < 0.0001)"),
        (0.000101, True, "differs (p = 0.0001)"),
        (0.000099, True, "differs (p < 0.0001)"),
        (0.0, True, "differs (p < 0.0001)"),
        (0.62, False, "noise (p = 0.62)"),
        (0.0523, False, "noise (p = 0.052)"),
        (1.0, False, "noise (p = 1)"),
    ],
)
def test_words(chance: float | None, is_change: bool, told: str) -> None:
    assert verdict(chance, is_change=is_change) == told


def test_without_a_test_nothing_differs() -> None:
    assert not differs(None)
    assert differs(0.01)
    assert not differs(0.5)


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ([1, 2, 3], [4, 5, 6], False),
        ([4, 5, 6], [1, 2, 3], False),
        ([1, 2, 4], [4, 5, 6], True),
        ([1, 2, 9], [4, 5, 6], True),
        ([0, 0, 0], [0, 0, 0], True),
        ([1], [1], False),
        ([1], [0, 2], False),
    ],
)
def test_overlap(before: list[float], after: list[float], found: bool) -> None:
    assert overlap(before, after) is found
