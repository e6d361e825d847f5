from __future__ import annotations

import click
import pytest
from stallscope.tracers.command.budget_option import DEFAULT, Budget, of


@pytest.mark.parametrize(
    ("given", "share"),
    [("3%", 0.03), ("3", 0.03), (" 0.5 %", 0.005), ("100%", 1.0), ("0.000001", 1e-8), (DEFAULT, DEFAULT)],
)
def test_shares(given: object, share: float) -> None:
    assert Budget().convert(given, None, None) == pytest.approx(share)


@pytest.mark.parametrize("given", ["0%", "0", "0.0", "1000%", "100.1", "999999999"])
def test_shares_that_cannot_be_kept(given: str) -> None:
    with pytest.raises(click.BadParameter, match=r"is not above 0% and at most 100%"):
        Budget().convert(given, None, None)


@pytest.mark.parametrize("given", ["", "%", "-3%", "3%%", "nan", "inf", "1e2", "٣%", "3,5", "3 5", "0x3", "1" * 5000])
def test_nonsense(given: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a share such as 3%"):
        Budget().convert(given, None, None)


def test_the_budget_of_a_trace() -> None:
    assert of({"budget": None}) == DEFAULT
    assert of({"budget": 0.03, "every": 5.0}) == 0.03
