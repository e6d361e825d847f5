from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from stallscope.converters.model.pressure import CoreThread, Pressure
from stallscope.converters.pprof import checks


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (checks.counts, {"a": 1}),
        (checks.listed, [1, "a"]),
        (checks.text, "a"),
        (checks.integer, -1),
        (checks.figure, 0),
        (checks.figure, checks.MOST - 1),
        (checks.truth, False),
    ],
)
def test_what_is_right_is_returned(check: Callable[[Any], Any], value: object) -> None:
    assert check(value) == value


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (checks.counts, [1]),
        (checks.counts, {"a": "1"}),
        (checks.listed, {"a": 1}),
        (checks.text, 1),
        (checks.integer, 1.0),
        (checks.figure, True),
        (checks.figure, -1),
        (checks.figure, checks.MOST),
        (checks.truth, 1),
    ],
)
def test_what_is_wrong_is_refused(check: Callable[[Any], Any], value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        check(value)


def test_fields_of_a_flat_object() -> None:
    made = Pressure(resource="cpu", cgroup="", some=1, full=2, elapsed=3)
    assert checks.flat(Pressure, asdict(made)) == made
    for wrong in ({"resource": 1}, {"some": "1"}, {"other": 1}):
        with pytest.raises(ValueError, match=r"."):
            checks.flat(Pressure, asdict(made) | wrong)
    with pytest.raises(ValueError, match=r"."):
        checks.flat(CoreThread, asdict(made))
