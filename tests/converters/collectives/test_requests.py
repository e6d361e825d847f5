"""Operations that a call begins and another one completes."""

from __future__ import annotations

import pytest
from collective_calls import MPI, MPI_IREDUCE, MPI_ISEND, MPI_WAIT, MPI_WAITALL, MS, Table
from stallscope.converters.collectives.records import NO_WAIT, OPEN
from stallscope.converters.collectives.requests import completed

WORLD, AT = 0x7F00_0000_0000, 0x7FFF_0000_0000
MPICH_WORLD = 0x44000000
HANDLE = 0x5580_0000_1000


def begins(table: Table, began: int, handle: int, *, place: int = AT, pid: int = 10, comm: int = WORLD) -> None:
    table.add(pid, began, MPI_IREDUCE, 1, 2, 8, 3, 0, comm, place, made=handle)


def waits(table: Table, began: int, *handles: int, ended: int, at: int = AT, pid: int = 10) -> None:
    """One handle, or several in one call."""
    if len(handles) == 1:
        table.add(pid, began, MPI_WAIT, at, 1, 0, *handles, ended=ended)
    else:
        table.add(pid, began, MPI_WAITALL, len(handles), at, 1, *handles[:9], ended=ended)


def ends(table: Table) -> list[tuple[int, int]]:
    """End, and begin of the wait, of each operation that was begun."""
    calls = completed(table.made()).calls
    mine = calls[calls["function"] == MPI_IREDUCE]
    return list(zip(mine["ended"].tolist(), mine["waits"].tolist(), strict=True))


def test_one_is_done_when_its_wait_ends() -> None:
    table = Table()
    begins(table, MS, HANDLE)
    waits(table, 3 * MS, HANDLE, ended=5 * MS)
    begins(table, 6 * MS, HANDLE)
    waits(table, 8 * MS, HANDLE, ended=OPEN)
    assert ends(table) == [(5 * MS, 3 * MS), (OPEN, 8 * MS)]


def test_the_last_call_with_the_handle_has_completed_it() -> None:
    """Calls as of MPI_Waitany, which completes one of several."""
    table = Table()
    begins(table, MS, HANDLE)
    begins(table, 2 * MS, HANDLE + 64, place=AT + 8)
    waits(table, 3 * MS, HANDLE, HANDLE + 64, ended=4 * MS)
    waits(table, 5 * MS, 0, HANDLE + 64, ended=6 * MS)
    assert ends(table) == [(4 * MS, 3 * MS), (6 * MS, 5 * MS)]


def test_what_nothing_completes() -> None:
    table = Table()
    begins(table, MS, HANDLE)
    begins(table, 2 * MS, HANDLE)  # it was completed by what is not known
    waits(table, 3 * MS, HANDLE + 8, ended=4 * MS)
    assert ends(table) == [(MS + 1000, NO_WAIT), (OPEN, NO_WAIT)]


def test_processes_are_told_apart() -> None:
    table = Table()
    begins(table, MS, HANDLE)
    begins(table, MS, HANDLE, pid=11)
    waits(table, 3 * MS, HANDLE, ended=5 * MS, pid=11)
    assert sorted(ends(table)) == [(OPEN, NO_WAIT), (5 * MS, 3 * MS)]


@pytest.mark.parametrize(("comm", "kept", "width"), [(WORLD, 9, 8), (MPICH_WORLD, 18, 4)])
def test_of_many_handles_the_last_ones_are_known_by_their_place(comm: int, kept: int, width: int) -> None:
    number = kept + 2
    table = Table()
    for at in range(number):
        begins(table, (at + 1) * MS, 0x1000 + at if width == 4 else HANDLE + at, place=AT + width * at, comm=comm)
    words = [HANDLE + at for at in range(9)]
    if width == 4:
        words = [0x1000 + 2 * at | 0x1001 + 2 * at << 32 for at in range(9)]
    table.add(10, 50 * MS, MPI_WAITALL, number - 1, AT, 1, *words, ended=60 * MS)
    assert ends(table) == [(60 * MS, 50 * MS)] * (number - 1) + [(OPEN, NO_WAIT)]


def test_a_number_that_nobody_has() -> None:
    """A hostile program gives one; what is looked at is bounded."""
    table = Table()
    begins(table, MS, HANDLE)
    table.add(10, 3 * MS, MPI_WAITALL, (1 << 64) - 1, (1 << 64) - 8, 1, HANDLE, ended=5 * MS)
    assert ends(table) == [(5 * MS, 3 * MS)]


def test_sends_that_are_done_share_a_handle() -> None:
    """Open MPI gives one for all that are done when the call returns."""
    table = Table()
    for at in range(3):
        table.add(10, at * MS, MPI_ISEND, 1, 8, 3, 1, 7, WORLD, AT + 8 * at, made=HANDLE)
    table.add(10, 5 * MS, MPI_WAITALL, 3, AT, 1, HANDLE, HANDLE, HANDLE, ended=6 * MS)
    calls = completed(table.made()).calls
    assert calls["ended"][:3].tolist() == [1000, MS + 1000, 6 * MS]


def test_without_such_calls_the_table_is_the_same() -> None:
    table = Table()
    table.add(10, MS, MPI, 1, 2, 8, 3, 0, WORLD)
    made = table.made()
    assert completed(made) is made
