"""Calls between a begin and an end of one thread."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from collective_calls import END, MS, REDUCE, SEND, START, Table
from stallscope.converters.collectives.brackets import brackets
from stallscope.converters.collectives.signatures import BEGINS_CAPTURE, BEGINS_GROUP, ENDS_CAPTURE, ENDS_GROUP


def found(functions: Sequence[int], lost: int = 0) -> list[tuple[tuple[int, ...], int | None]]:
    """Rows of the groups of one thread, which makes a call each ms."""
    table = Table()
    for number, function in enumerate(functions):
        table.add(10, number * MS, function)
    return [(tuple(each.rows), each.end) for each in brackets(table.made(lost), BEGINS_GROUP, ENDS_GROUP)]


@pytest.mark.parametrize(
    ("functions", "expected"),
    [
        ([], []),
        ([REDUCE], []),
        ([REDUCE, START, REDUCE, SEND, END, REDUCE], [((2, 3), 4)]),
        ([START, START, REDUCE, END, SEND, END], [((2, 4), 5)]),  # inside of another one
        ([REDUCE, END, START, REDUCE, END], [((0,), 1), ((3,), 4)]),  # it began before the trace
        ([REDUCE, START, REDUCE], [((2,), None)]),
        ([START, END, REDUCE, END], [((), 1)]),  # an end without a begin that is not the first one
        ([START], []),
    ],
)
def test_the_outermost_one_counts(functions: Sequence[int], expected: Sequence[object]) -> None:
    assert found(functions) == expected


def test_where_calls_are_missing_none_is_inside_of_another_one() -> None:
    functions = [START, REDUCE, START, REDUCE, END, REDUCE]
    assert found(functions, lost=1) == [((3,), 4)]
    assert found(functions) == [((1, 3, 5), None)]
    assert found([REDUCE, END], lost=1) == []


def test_threads_and_kinds_are_told_apart() -> None:
    table = Table()
    for pid in (10, 11):
        table.add(pid, pid, START)
        table.reduce(pid, pid + 100)
    table.add(10, 1000, END)
    assert [each.end for each in brackets(table.made(), BEGINS_GROUP, ENDS_GROUP)] == [4, None]
    assert not list(brackets(table.made(), BEGINS_CAPTURE, ENDS_CAPTURE))
