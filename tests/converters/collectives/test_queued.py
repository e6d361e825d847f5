"""Calls behind those of another communicator in their stream."""

from __future__ import annotations

import pytest
from collective_calls import BROADCAST, COMM, DEVICE, MPI, MS, STREAM, SYNC, Table, told
from stallscope.converters.collectives.communicators import communicators
from stallscope.converters.collectives.meetings import meetings
from stallscope.converters.collectives.queued import queued
from stallscope.converters.collectives.told import Trace
from stallscope.converters.model.collectives import Standing
from stallscope.converters.summary.collective_sentences import sentences

OTHER = 0x6000
END = 2_000 * MS
WAIT = (SYNC, STREAM)


def steps(*last: tuple[int, int], wait: tuple[int, ...] = WAIT, ended: int = -1) -> Table:
    """Two ranks that meet in two communicators, eight times; then each calls two operations, and waits for them."""
    table = Table()
    for rank, order in enumerate(last):
        pid = 10 + rank
        for comm, key in ((COMM, 7), (OTHER, 8)):
            table.init(pid, rank, made=comm, identity=key)
        for step in range(1, 9):
            table.reduce(pid, step * 10 * MS)
            table.reduce(pid, step * 10 * MS + MS, comm=OTHER)
            table.add(pid, step * 10 * MS + 2 * MS, SYNC, STREAM)
        for number, comm in enumerate(order):
            table.reduce(pid, 100 * MS + number * MS, comm=comm)
        if wait:
            table.add(pid, 105 * MS, *wait, ended=ended)
    return table


def rows(table: Table) -> list[tuple[int, int]]:
    """Processes and communicators of the calls."""
    made = table.made()
    known = communicators(made)
    joined = [meetings(each.calls, from_start=each.is_whole) for each in known]
    found = [made.calls[row] for row in sorted(queued(made, known, joined))]
    return [(int(each["pid"]), int(each["arguments"][5])) for each in found]


@pytest.mark.parametrize("wait", [WAIT, (DEVICE,)])
def test_calls_in_different_orders(wait: tuple[int, ...]) -> None:
    assert rows(steps((COMM, OTHER), (OTHER, COMM), wait=wait)) == [(10, OTHER), (11, COMM)]


def test_those_that_are_not_waited_for() -> None:
    assert rows(steps((COMM, OTHER), (OTHER, COMM), wait=())) == []
    assert rows(steps((COMM, OTHER), (OTHER, COMM), wait=(SYNC, STREAM + 1))) == []
    assert rows(steps((COMM, OTHER), (OTHER, COMM), ended=200 * MS)) == [], "they are done"


def test_calls_of_one_communicator_and_of_mpi() -> None:
    assert rows(steps((COMM, COMM), (COMM, COMM))) == []
    table = steps((COMM, OTHER), (OTHER, COMM))
    table.add(10, 103 * MS, MPI, 1, 2, 8, 3, 0, 0x7000)
    assert rows(table) == [(10, OTHER), (11, COMM)]


def test_who_is_in_which() -> None:
    one, other = told(steps((COMM, OTHER), (OTHER, COMM)).made(), Trace(END, {10: "train", 11: "train"}))
    assert one.meetings == other.meetings == 9, "all have called"
    assert one.standing == (Standing(10, 9, "all-reduce", 4096, 100 * MS), Standing(11, 8, "", 0, 82 * MS + 1000))
    assert [each.number for each in other.standing] == [8, 9]
    (text,) = sentences([one, other])
    assert text == (
        "Two communicators of train wait for each other: rank 0 (pid 10) is in all-reduce 9 of one, rank 1 (pid 11) is "
        "in all-reduce 9 of the other: they call them in different orders."
    )


def test_a_missing_rank_is_missing_in_the_first_one_only() -> None:
    table = steps((COMM, OTHER), (COMM, OTHER))
    table.rows = [row for row in table.rows if row[2] == 10 or row[0] < 100 * MS]
    one, other = told(table.made(), Trace(END, {}))
    assert [each.what for each in one.standing] == ["all-reduce", ""]
    assert other.standing == ()


def far_ahead(missing: int) -> Table:
    """Four ranks that call 60 times two operations of two communicators and wait for none of them. Three wait for all
    when the trace ends; the last one has not come to ``missing`` of its last steps."""
    table = Table()
    for pid in range(10, 14):
        for comm, key in ((COMM, 7), (OTHER, 8)):
            table.init(pid, pid - 10, made=comm, identity=key, size=4)
        for step in range(60 - (missing if pid == 13 else 0)):
            table.reduce(pid, (step + 1) * 10 * MS)
            table.reduce(pid, (step + 1) * 10 * MS + 2 * MS, comm=OTHER)
        if pid != 13:
            table.add(pid, 610 * MS, DEVICE, ended=-1)
    return table


def test_what_all_have_called_is_done() -> None:
    assert rows(far_ahead(0)) == []
    assert [each.standing for each in told(far_ahead(0).made(), Trace(END, {}))] == [(), ()]


def test_only_calls_behind_the_one_that_lacks_a_rank_are_no_arrivals() -> None:
    assert rows(far_ahead(1)) == [(pid, OTHER) for pid in (10, 11, 12)]
    one, other = told(far_ahead(1).made(), Trace(END, {}))
    assert [(each.number, each.what) for each in one.standing] == [(60, "all-reduce")] * 3 + [(59, "")]
    assert other.standing == ()


def test_ranks_of_one_process_share_the_number_of_a_stream() -> None:
    """Nothing is known of the order: each device has a default stream."""
    table = steps((COMM, OTHER), (OTHER, COMM))
    for rank in (2, 3):
        table.init(10, rank, made=COMM + 64 * rank)
        table.reduce(10, 110 * MS + rank, comm=COMM + 64 * rank)
    assert rows(table) == []


def test_an_operation_with_a_root_is_done_where_nobody_is_waited_for() -> None:
    """The root has sent what the other one asks for later."""
    table = steps((COMM, OTHER), (OTHER, COMM))
    at = (100 * MS, 101 * MS)
    table.rows = [
        (began, ended, pid, BROADCAST, made, (1, 2, 8, 7, 0, COMM, STREAM, *[0] * 5))
        if began in at and arguments[5] == COMM
        else (began, ended, pid, function, made, arguments)
        for began, ended, pid, function, made, arguments in table.rows
    ]
    assert rows(table) == []
