from __future__ import annotations

from typing import Any

import click
import pytest
from stallscope.tracers.command.watch_options import REFRESH, Size, prepare

GIVEN: dict[str, Any] = {"every": None, "watch": None, "live": False, "when": None, "as_json": False}


@pytest.mark.parametrize(
    ("given", "seconds"),
    [({}, None), ({"watch": 60.0}, 60), ({"live": True}, REFRESH), ({"live": True, "watch": 5.0, "when": "x"}, 5)],
)
def test_what_goes_on_has_intervals(given: dict[str, Any], seconds: float | None) -> None:
    values = {**GIVEN, **given}
    assert prepare(values) is (seconds is not None)
    assert values["every"] == seconds


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"every": 60.0}, "--watch in place of --every"),
        ({"when": "lock > 5%"}, "add --watch 10s"),
        ({"live": True, "as_json": True}, "--json is for programs"),
    ],
)
def test_contradictions(given: dict[str, Any], says: str) -> None:
    with pytest.raises(click.UsageError, match=says):
        prepare({**GIVEN, **given})


@pytest.mark.parametrize(("text", "size"), [("500M", 500 << 20), ("2G", 2 << 30), ("1KB", 1024), ("1T", 1 << 40)])
def test_sizes(text: str, size: int) -> None:
    assert Size().convert(text, None, None) == size


@pytest.mark.parametrize("text", ["", "5", "0M", "-1G", "1.5G", "G", "1 G", "9999999999G"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a size such as 500M or 2G"):
        Size().convert(text, None, None)
