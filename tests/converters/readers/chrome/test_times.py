from __future__ import annotations

from typing import Any

import pytest
from stallscope.converters.readers.chrome.times import nanoseconds


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((3, 3000), ("1.5", 1500), ("-0.25", -250), ("1716212345678901.234", 1716212345678901234)),
        *(("1e3", 10**6), ("4000000000000000.000", 4 * 10**18), ("0.0005", 1), ("12", 12000)),
    ],
)
def test_nanoseconds(value: Any, expected: int) -> None:
    assert nanoseconds(value) == expected


@pytest.mark.parametrize("value", [None, True, "x", "nan", "inf", 2**63, "1e30", "5000000000000000.000", [], {}])
def test_no_time(value: Any) -> None:
    with pytest.raises((ValueError, TypeError, OverflowError)):
        nanoseconds(value)
