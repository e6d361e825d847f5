"""Collectives that are captured into graphs."""

from __future__ import annotations

from collective_calls import (
    CAPTURE,
    CAPTURED,
    DRIVER_CAPTURE,
    DRIVER_CAPTURED,
    DRIVER_LAUNCH,
    LAUNCH,
    MS,
    SEND,
    STREAM,
    Table,
)
from stallscope.converters.collectives.graphs import without_captured
from stallscope.converters.collectives.told import Trace
from stallscope.converters.collectives.told import told as told_of


def of_graphs(*, captures: bool = True, launches: int = 5) -> Table:
    """Two ranks that capture a collective and a message, and launch the graph; the runtime calls the driver."""
    table = Table()
    for pid, rank in ((10, 0), (11, 1)):
        table.init(pid, rank)
        if captures:
            table.add(pid, MS, CAPTURE, STREAM, ended=MS + 90)
            table.add(pid, MS + 10, DRIVER_CAPTURE, STREAM, ended=MS + 20)
        table.reduce(pid, 2 * MS)
        table.add(pid, 3 * MS, SEND)
        if captures:
            table.add(pid, 4 * MS, CAPTURED, STREAM, ended=4 * MS + 90)
            table.add(pid, 4 * MS + 10, DRIVER_CAPTURED, STREAM, ended=4 * MS + 20)
        for step in range(launches):
            table.add(pid, (10 + step) * MS, LAUNCH, 1, STREAM, ended=(10 + step) * MS + 90)
            table.add(pid, (10 + step) * MS + 10, DRIVER_LAUNCH, 1, STREAM, ended=(10 + step) * MS + 20)
        table.reduce(pid, 30 * MS)
    return table


def test_what_is_captured_is_no_meeting() -> None:
    table = of_graphs().made()
    found = without_captured(table)
    assert (found.calls, found.launches, len(found.table.calls)) == (4, 10, len(table.calls) - 4)
    told = told_of(table, Trace(40 * MS, {}))
    assert (told.captured, told.launches) == (4, 10)
    assert [each.meetings for each in told.communicators] == [1]


def test_without_a_capture_nothing_is_left_out() -> None:
    table = of_graphs(captures=False, launches=0).made()
    found = without_captured(table)
    assert (found.table, found.calls, found.launches) == (table, 0, 0)
    assert [each.meetings for each in told_of(table, Trace(40 * MS, {})).communicators] == [2]
