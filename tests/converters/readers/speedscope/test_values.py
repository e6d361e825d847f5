from __future__ import annotations

from typing import Any

import pytest
from stallscope.converters.readers.speedscope.values import number, typed, weight


def test_what_is_right_comes_back() -> None:
    assert typed({"a": 1}, dict, "x") == {"a": 1}
    assert [number(value, "x") for value in (0, -1.5, (1 << 63) - 1)] == [0, -1.5, (1 << 63) - 1]
    assert weight(0, "x") == 0


@pytest.mark.parametrize("value", [True, "1", None, [1], float("nan"), float("inf"), 1 << 63, -(1 << 63)])
def test_what_is_no_number(value: Any) -> None:
    with pytest.raises(ValueError, match="a time or weight of profile 1 is no number, or too large"):
        number(value, "profile 1")


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(ValueError, match="name should be a JSON string"):
        typed(5, str, "name")
    with pytest.raises(ValueError, match="line should be a JSON whole number"):
        typed(True, int, "line")
    with pytest.raises(ValueError, match="profile 2 has a weight below 0"):
        weight(-1, "profile 2")
