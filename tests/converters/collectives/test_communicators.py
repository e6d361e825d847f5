"""Communicators of tables of calls."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest
from collective_calls import (
    ALL_GATHER,
    BROADCAST,
    COMM,
    DESTROY,
    GATHER,
    INIT,
    MPI,
    MPI_LARGE,
    MS,
    OTHER,
    REDUCE,
    SCALABLE,
    SCATTER,
    SHRINK,
    SPLIT,
    STREAM,
    SYNC,
    Table,
)
from numpy.typing import NDArray
from stallscope.converters.collectives.communicators import communicators, endpoints, operations
from stallscope.converters.collectives.evidence import candidates
from stallscope.converters.collectives.meetings import Member
from stallscope.converters.collectives.records import OPEN, CallTable


def test_ranks_that_gave_the_same_id_are_of_one_communicator() -> None:
    table = Table()
    table.init(11, 1)
    table.init(10, 0)
    table.init(12, 0, identity=8, size=1)
    for pid in (10, 11):
        table.reduce(pid, 5 * MS)
    pair, single = communicators(table.made())
    assert (pair.is_known, single.is_known) == (True, True)
    assert [(each.pid, each.rank, each.size) for each in pair.members] == [(10, 0, 2), (11, 1, 2)]
    assert [len(each.began) for each in pair.calls] == [1, 1]
    assert [(each.pid, each.size) for each in single.members] == [(12, 1)]


def test_an_address_that_comes_back_is_another_communicator() -> None:
    table = Table()
    table.init(10, 0, size=1)
    table.reduce(10, MS)
    table.add(10, 2 * MS, DESTROY, COMM)
    table.add(10, 3 * MS, INIT, 1, 1, 0, 0, 0, 0, 8, 8, made=COMM)
    table.reduce(10, 4 * MS)
    table.reduce(10, 5 * MS)
    first, second = endpoints(table.made())
    assert (len(first.rows), first.ended) == (1, True)
    assert (len(second.rows), second.ended) == (2, False)


def test_one_that_is_made_unseen_where_another_has_ended() -> None:
    # ncclCommInitAll does.
    table = Table()
    table.init(10, 0, size=1)
    table.reduce(10, MS)
    table.add(10, 2 * MS, DESTROY, COMM)
    table.add(10, 3 * MS, DESTROY, COMM)
    table.reduce(10, 4 * MS)
    first, second = endpoints(table.made())
    assert (len(first.rows), first.size, first.number) == (1, 1, 1)
    assert (len(second.rows), second.size, second.identity, second.made, second.number) == (1, -1, None, OPEN, 3)


def again() -> CallTable:
    """Four ranks of a communicator that was made before; and pairs at the address where it was."""
    table = Table()
    for pid in range(10, 14):
        table.steps(pid, 0, of=6)
        table.add(pid, 100 * MS, DESTROY, COMM)
        table.add(pid, 110 * MS, SCALABLE, 1, 2, (pid - 10) % 2, made=COMM)
        for step in range(6):
            began = (200 if pid < 12 else 205) * MS + step * 10 * MS
            table.reduce(pid, began)
            table.add(pid, began + 2000, SYNC, STREAM, ended=began + 4 * MS)
    return table.made()


def words(of: int, rank: int, size: int) -> NDArray[np.void]:
    return candidates(struct.pack("<QiiQ", of << 48 | 5, rank, size, 0))


def test_memory_tells_of_the_communicator_that_was_there() -> None:
    old = {Member(pid, COMM): words(0xDEAD, pid - 10, 4) for pid in range(10, 14)}
    world, *pairs = communicators(replace(again(), memory=old))
    assert (world.is_known, [(each.pid, each.rank) for each in world.members]) == (
        True,
        [(10, 0), (11, 1), (12, 2), (13, 3)],
    )
    assert [(each.is_known, [(of.pid, of.rank) for of in each.members]) for each in pairs] == [
        (False, [(10, 0), (11, 1)]),
        (False, [(12, 0), (13, 1)]),
    ]
    new = {Member(pid, COMM, 2): words(0xBEE0 + pid // 12, pid % 2, 2) for pid in range(10, 14)}
    stale = {Member(10, COMM, 1): words(0xBAD, 0, 2)}
    world, *pairs = communicators(replace(again(), memory={**old, **new, **stale}))
    assert [len(each.members) for each in (world, *pairs)] == [4, 2, 2]
    assert all(each.is_known for each in (world, *pairs))


def test_splits_are_told_apart_by_their_place_and_color() -> None:
    table = Table()
    for rank in range(4):
        table.init(10 + rank, rank, size=4)
        table.add(10 + rank, MS, SPLIT, COMM, rank % 2, 0, 1, made=0x6000)
        table.add(10 + rank, 2 * MS, SPLIT, COMM, 0, 0, 1, made=0x7000)
    found = communicators(table.made())
    assert sorted([each.pid for each in one.members] for one in found) == [
        [10, 11, 12, 13],
        [10, 11, 12, 13],
        [10, 12],
        [11, 13],
    ]
    assert all(one.is_known for one in found)


def test_a_rank_without_a_color_is_in_no_split() -> None:
    table = Table()
    for rank in range(2):
        table.init(10 + rank, rank)
        table.add(10 + rank, MS, SPLIT, COMM, (0, (1 << 32) - 1)[rank], 0, 1, made=(0x6000, 0)[rank])
    assert [len(one.members) for one in communicators(table.made())] == [2, 1]


def test_what_is_left_of_one_that_shrinks() -> None:
    table = Table()
    for rank in range(3):
        table.init(10 + rank, rank, size=3)
    for rank in range(2):  # each has its own list of those that go
        table.add(10 + rank, MS, SHRINK, COMM, 0x9000 + rank, 1, 1, made=0x6000)
    assert [[each.pid for each in one.members] for one in communicators(table.made())] == [[10, 11, 12], [10, 11]]


def test_many_ids_are_not_known() -> None:
    """The rank and the number of ranks are."""
    table = Table()
    for rank in range(2):
        table.add(10 + rank, 0, SCALABLE, 1, 2, rank, 1, 0x8000, 0, 7, 9, made=COMM)
        table.steps(10 + rank, MS)
    (found,) = communicators(table.made())
    assert not found.is_known
    assert [(each.rank, each.size, each.identity) for each in found.members] == [(0, 2, None), (1, 2, None)]


def test_an_init_that_failed_makes_none() -> None:
    table = Table()
    table.init(10, 0, made=0)
    assert communicators(table.made()) == []


def test_who_was_there_before_the_trace_is_known_by_what_it_does() -> None:
    table = Table()
    table.steps(10, 0)
    table.steps(11, 8 * MS)
    table.steps(12, MS, comm=0x9000, count=5)
    pair, single = communicators(table.made())
    assert [each.pid for each in pair.members] == [10, 11]
    assert not pair.is_known
    assert [each.pid for each in single.members] == [12]


def test_one_who_fits_two_groups_is_alone() -> None:
    table = Table()
    for pid, comm in ((10, COMM), (10, 0x6000), (11, COMM)):
        table.steps(pid, 0, comm=comm)
    assert [len(one.members) for one in communicators(table.made())] == [1, 1, 1]


def test_mpi_is_done_when_it_returns_and_nccl_when_the_stream_is() -> None:
    table = Table()
    table.add(10, 0, MPI, 1, 2, 8, 3, 0, COMM, ended=4 * MS)
    table.reduce(11, 0)
    table.add(11, 2000, SYNC, STREAM + 1, ended=3 * MS)
    table.add(11, 3 * MS, SYNC, STREAM, ended=5 * MS)
    table.reduce(11, 6 * MS)
    done = {one.members[0].pid: one.calls[0].done.tolist() for one in communicators(table.made())}
    assert done == {10: [4 * MS], 11: [5 * MS, OPEN]}


def test_types_of_mpi_that_are_addresses_differ_by_process() -> None:
    table = Table()
    for pid, kind in ((10, 0x7F1122334400), (11, 0x7F5566778800), (12, 0x4C00080B), (13, 0x4C000405)):
        table.add(pid, pid, MPI, 1, 2, 8, kind, 0, COMM)
    found = operations(table.made()).tolist()
    assert found[0] == found[1] and len(set(found)) == 3


def test_counts_of_mpi_are_those_of_an_int() -> None:
    """Bits that a caller has left in the upper half of the register are no part of it; NCCL's has all bits,
    and so have MPI's large counts."""
    table = Table()
    for pid, count in ((10, 8), (11, 0x7F11_0000_0008), (12, (1 << 64) - 8), (13, 0xFFFF_FFF8), (14, 9)):
        table.add(pid, pid, MPI, 1, 2, count, 0x4C00080B, 0, COMM)
    table.reduce(15, 15, count=8)
    table.reduce(16, 16, count=1 << 40 | 8)
    for pid, count in ((17, 8), (18, 1 << 40 | 8)):
        table.add(pid, pid, MPI_LARGE, 1, 2, count, 0x4C00080B, 0, COMM)
    found = operations(table.made()).tolist()
    assert found[0] == found[1] and found[2] == found[3]
    assert len(set(found)) == 7


def test_operations_with_a_root_are_not_done_for_all() -> None:
    table = Table()
    table.reduce(10, 0)
    table.add(10, 4, BROADCAST, 1, 2, 1024, 7, 0, COMM, STREAM)
    (one,) = communicators(table.made())
    assert one.calls[0].for_all.tolist() == [True, False]


def test_operations_differ_by_function_count_type_and_root() -> None:
    table = Table()
    table.reduce(10, 0)
    table.reduce(10, 1)
    table.reduce(10, 2, count=9)
    table.add(10, 3, REDUCE, 1, 2, 1024, 8, 0, COMM, STREAM)
    table.add(10, 4, BROADCAST, 1, 2, 1024, 7, 0, COMM, STREAM)
    table.add(10, 5, BROADCAST, 1, 2, 1024, 7, 1, COMM, STREAM)
    found = operations(table.made()).tolist()
    assert found[0] == found[1]
    assert len(set(found)) == 5


FLOAT, NO_TYPE, IN_PLACE = 0x4C00040A, 0x0C000000, (1 << 64) - 1
ROOT = (0, 0x44000000)
"""Root and communicator."""


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        # (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, …): the root's first, then another rank's.
        (SCATTER, ((0x7F00, 256, FLOAT, 0x7F10, 256, FLOAT, *ROOT), (0, 0, NO_TYPE, 0x7F10, 256, FLOAT, *ROOT))),
        (SCATTER, ((0x7F00, 256, FLOAT, IN_PLACE, 0, NO_TYPE, *ROOT), (0, 0, NO_TYPE, 0x7F10, 256, FLOAT, *ROOT))),
        (SCATTER, ((0x7F00, 256, FLOAT, 1, 0, NO_TYPE, *ROOT), (0, 0, NO_TYPE, 0x7F10, 256, FLOAT, *ROOT))),
        (GATHER, ((0x7F00, 256, FLOAT, 0x7F10, 256, FLOAT, *ROOT), (0x7F00, 256, FLOAT, 0, 0, NO_TYPE, *ROOT))),
        (GATHER, ((IN_PLACE, 0, NO_TYPE, 0x7F10, 256, FLOAT, *ROOT), (0x7F00, 256, FLOAT, 0, 0, NO_TYPE, *ROOT))),
        (ALL_GATHER, ((0x7F00, 256, FLOAT, 0x7F10, 256, FLOAT, 9), (IN_PLACE, 0, NO_TYPE, 0x7F10, 256, FLOAT, 9))),
    ],
)
def test_arguments_that_a_rank_need_not_give(function: int, calls: tuple[tuple[int, ...], ...]) -> None:
    """MPI 4.1, 6.5 to 6.7: those of the root only, and those of what is in place already."""
    table = Table()
    for rank, arguments in enumerate(calls):
        table.add(10 + rank, rank, function, *arguments)
    assert operations(table.made()).tolist() == [0, 0]
    of = list(calls[1])
    of[1 if function == GATHER else 4] = 255
    table.add(12, 9, function, *of)
    assert operations(table.made()).tolist() == [1, 1, 0], "other counts are other operations"


def test_other_functions_are_no_collectives() -> None:
    table = Table()
    table.add(10, 0, OTHER, COMM)
    assert communicators(table.made()) == []
    assert communicators(Table().made()) == []
