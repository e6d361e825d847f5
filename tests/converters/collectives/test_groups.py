"""Calls in groups."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from collective_calls import BROADCAST, COMM, END, MS, REDUCE, SEND, START, STREAM, SYNC, Table, told
from stallscope.converters.collectives.groups import launched
from stallscope.converters.collectives.records import OPEN, CallTable
from stallscope.converters.collectives.signatures import GROUPED
from stallscope.converters.collectives.told import Trace
from stallscope.converters.model.collectives import UNKNOWN

OTHER = 0x9000


def of_one(*functions: int, lost: int = 0) -> CallTable:
    """Calls of one thread, one each ms."""
    table = Table()
    for number, function in enumerate(functions):
        table.add(10, number * MS, function, 1, 2, 1024, 7, 0, COMM, STREAM)
    return table.made(lost)


def times(table: CallTable, *functions: int) -> list[int]:
    """Begins in ms of the calls of these functions."""
    calls = launched(table).calls
    return [int(call["began"]) // MS for call in calls if call["function"] in functions]


@pytest.mark.parametrize(
    ("functions", "begins"),
    [
        ([REDUCE, START, REDUCE, END, REDUCE], [0, 3, 4]),
        ([START, START, REDUCE, END, SEND, END], [5]),  # inside of another one
        ([REDUCE, END, START, REDUCE, END], [1, 4]),  # it began before the trace
        ([REDUCE, START, REDUCE], [0]),  # it has not ended
        ([START, END, REDUCE, END], [2]),  # an end without a begin: it is not the first
        ([START, END], []),
    ],
)
def test_collectives_are_launched_at_the_end_of_the_outermost_group(
    functions: Sequence[int], begins: Sequence[int]
) -> None:
    assert times(of_one(*functions), REDUCE) == begins


def test_an_end_that_is_missing_does_not_hold_what_follows() -> None:
    lost = [START, REDUCE, START, REDUCE, END, REDUCE]
    assert times(of_one(*lost, lost=1), REDUCE) == [1, 4, 5]
    assert times(of_one(*lost), REDUCE) == []


def test_messages_are_launched_then_too() -> None:
    assert times(of_one(START, SEND, SEND, END), SEND) == [3, 3]


def test_threads_have_groups_of_their_own() -> None:
    table = Table()
    table.add(10, 0, START)
    for pid in (10, 11):
        table.reduce(pid, pid * MS)
    table.add(10, 20 * MS, END)
    found = launched(table.made()).calls
    assert {int(call["pid"]): int(call["began"]) for call in found if call["function"] == REDUCE} == {
        10: 20 * MS,
        11: 11 * MS,
    }


def test_a_table_without_groups_is_the_same() -> None:
    table = of_one(REDUCE, REDUCE)
    assert launched(table).calls.tobytes() == table.calls.tobytes()


def steps(counts: Sequence[Sequence[int]], *, second: int = REDUCE, late: int = 3 * MS) -> Table:
    """Two ranks that launch two collectives of a communicator in each step. The second rank asks for them in time, and
    ends its group ``late``. ``counts``: of each rank's."""
    table = Table()
    for pid, its in zip((10, 11), counts, strict=True):
        for step in range(8):
            at = step * 10 * MS
            table.add(pid, at, START)
            table.reduce(pid, at + 1, count=its[0])
            table.add(pid, at + 2, second, 1, 2, its[1], 7, 0, COMM, STREAM)
            table.reduce(pid, at + 3, comm=OTHER)
            end = at + 4 + (late if pid == 11 else 0)
            table.add(pid, end, END)
            table.add(pid, end + 2000, SYNC, STREAM, ended=at + 9 * MS)
    return table


def test_those_of_one_communicator_in_a_group_are_one_meeting() -> None:
    table = steps([(1024, 2048)] * 2)
    both, single = sorted(told(table.made(), Trace(80 * MS, {})), key=lambda each: -each.kinds[0].bytes)
    for found, size in ((both, 4 * 3072), (single, 4096)):
        assert [(each.what, each.bytes, each.meetings, each.spread) for each in found.kinds] == [
            ("all-reduce", size, 8, 3 * MS)
        ]
        assert [(each.calls, each.last, each.waited) for each in found.ranks] == [(8, 0, 24 * MS), (8, 8, 0)]


def test_different_operations_in_a_group() -> None:
    table = steps([(1024, 512)] * 2, second=BROADCAST)
    kinds = {(kind.what, kind.bytes) for each in told(table.made(), Trace(80 * MS, {})) for kind in each.kinds}
    assert kinds == {(GROUPED, 4 * 1536), ("all-reduce", 4096)}


def test_a_size_that_is_not_known_makes_that_of_all_unknown() -> None:
    table = steps([(1024, (1 << 64) - 1)] * 2)
    kinds = {(kind.what, kind.bytes) for each in told(table.made(), Trace(80 * MS, {})) for kind in each.kinds}
    assert kinds == {("all-reduce", UNKNOWN), ("all-reduce", 4096)}


def test_ranks_whose_groups_differ_do_not_fit() -> None:
    table = steps([(1024, 2048), (1024, 1024)])
    assert [each.kinds[0].bytes for each in told(table.made(), Trace(80 * MS, {}))] == [4096]


def test_a_rank_in_a_group_that_does_not_end_has_not_come() -> None:
    table = Table()
    for pid, rank in ((10, 0), (11, 1)):
        table.init(pid, rank)
        table.reduce(pid, MS)
        table.add(pid, 2 * MS, START)
        table.reduce(pid, 3 * MS)
    table.add(10, 4 * MS, END, ended=OPEN)
    (found,) = told(table.made(), Trace(10_000 * MS, {}))
    assert [(each.number, each.what) for each in found.standing] == [(2, "all-reduce"), (1, "")]
