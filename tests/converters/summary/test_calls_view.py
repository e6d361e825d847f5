"""The order of the rows of the table of calls."""

from __future__ import annotations

import pytest
from stallscope.converters.model.calls import BUCKETS, CallTimes
from stallscope.converters.model.display import BY, CallsView
from stallscope.converters.summary.calls import Calls
from stallscope.converters.summary.calls_view import SORTS, rows
from stallscope.tracers.command import call_options

SLOW, FAST = (0,) * 40 + (1,) + (0,) * (BUCKETS - 41), (1,) + (0,) * (BUCKETS - 1)


def calls(*each: CallTimes) -> list[Calls]:
    return [Calls(call, (call,)) for call in each]


FIGURES = {
    "calls": {"count": 9},
    "total": {"total": 900},
    "self": {"total": 500},
    "ratio": {"total": 500},
    "min": {"min": 9, "max": 9},
    "max": {"max": 9},
    "ave": {"total": 100},
    "p50": {"latencies": SLOW, "max": 1 << 20, "min": 1},
    "p99": {"latencies": SLOW, "max": 1 << 20, "min": 1},
    "cpu": {"total": 100},
    "blocked": {"blocked": 9},
    "queued": {"runnable": 9},
    "errors": {"errors": {"E": 9}},
}
"""Figures that the second call has more than the first one."""


@pytest.mark.parametrize("column", SORTS)
def test_every_column_can_be_sorted_by(column: str) -> None:
    one = CallTimes("a", "/x", 1, "p", 1, 10, 1, 1, 1, 1, FAST, {"E": 1})
    other = CallTimes("b", "/x", 1, "p", **{"count": 1, "total": 10, "min": 1, "max": 1, "blocked": 1, "runnable": 1,
        "latencies": FAST, **FIGURES[column]})  # type: ignore[arg-type]  # fmt: skip
    assert [row.call.name for row in rows(calls(one, other), CallsView(column))] == ["b", "a"]
    assert [row.call.name for row in rows(calls(other, one), CallsView(column))] == ["b", "a"]


def test_equal_rows_are_in_the_order_of_their_names() -> None:
    made = [CallTimes(name, "/x", 1, "p", 1, 10) for name in "cab"]
    assert [row.call.name for row in rows(calls(*made), CallsView("max"))] == ["a", "b", "c"]


def test_the_options_are_those_of_the_table() -> None:
    """The options repeat those of the table, so that --help imports nothing."""
    assert tuple(SORTS) == call_options.SORTS
    assert call_options.BY == BY
