from __future__ import annotations

import pytest
from stallscope.converters.facts.sampling import are_few, shown_share


@pytest.mark.parametrize(
    ("samples", "part", "text"),
    [
        (3, 786, "about 79 %"),
        (100, 786, "about 79 %"),
        (1000, 786, "78.6 %"),
        (0, 786, "78.6 %"),
        (5, 1000, "about 100 %"),
    ],
)
def test_shares(samples: int, part: int, text: str) -> None:
    assert shown_share(samples, part, 1000) == text


def test_shares_of_nothing() -> None:
    assert shown_share(3, 1, 0) == "-"
    assert shown_share(3, 0, 10) == "0.0 %"
    assert are_few(3, 0, 10)


def test_few_are_many_if_they_are_a_small_part() -> None:
    assert not are_few(1, 1, 10)
    assert are_few(1, 1, 9)
    assert not are_few(10, 10, 10)
