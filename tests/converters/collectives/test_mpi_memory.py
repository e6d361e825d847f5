"""Memory of MPI's communicators and types. Layouts: those of Open MPI 4.1, and others."""

from __future__ import annotations

import struct

import pytest
from stallscope.converters.collectives.meetings import Member
from stallscope.converters.collectives.mpi_memory import WORLD, Named, handle_size, jobs, named, ranks, type_size

POINTER = 0x5582_1234_5678


def struct_of(name: bytes, *numbers: int, at: int = 160, pointer: int = POINTER) -> bytes:
    """A communicator: a name of 64 bytes, and numbers behind it, then an address."""
    behind = struct.pack(f"<{len(numbers)}i", *numbers) + struct.pack("<Q", pointer)
    return (b"\x11" * at + name.ljust(64, b"\0") + behind).ljust(512, b"\0")


def one_of(*told: Named, first: int = 10) -> dict[Member, Named]:
    return {Member(first + number, 0x7000): each for number, each in enumerate(told)}


def is_apart(one: int, other: int) -> bool:
    return one // 10 != other // 10


def test_a_name_and_what_is_behind_it() -> None:
    found = named(struct_of(b"MPI_COMM_WORLD", 0, 3, 4102, 0))
    assert found and found.name == WORLD
    # A half of an address is none.
    assert {place: number for place, number in found.numbers.items() if place < 24} == {0: 0, 4: 3, 8: 4102, 12: 0}
    split = named(struct_of(b"MPI COMMUNICATOR 3 SPLIT FROM 0", 3, 1))
    assert split and (split.name, split.numbers[4]) == ("MPI COMMUNICATOR 3 SPLIT FROM 0", 1)


@pytest.mark.parametrize(
    "data",
    [
        struct_of(b"my own name", 0, 3),
        struct_of(b"MPI_COMM_WORLD", 0, 3, at=161),
        b"MPI_COMM_WORLD\0\0MPI_COMM_SELF\0\0\0",
        b"MPI_COMM_WORLD",
        b"",
    ],
)
def test_other_memory_tells_nothing(data: bytes) -> None:
    assert named(data) is None


def test_a_struct_that_is_cut() -> None:
    found = named(struct_of(b"MPI_COMM_WORLD", 0, 3)[:230])
    assert found and found.numbers == {}


def test_the_place_that_tells_processes_apart() -> None:
    read = [named(struct_of(b"MPI_COMM_WORLD", 0, rank, 4102, 0, pointer=POINTER + rank)) for rank in (2, 0, 1)]
    assert ranks(one_of(*filter(None, read)), is_apart) == {
        Member(10 + i, 0x7000): rank for i, rank in enumerate((2, 0, 1))
    }


def test_two_such_places_tell_nothing() -> None:
    read = [named(struct_of(b"MPI_COMM_WORLD", rank, rank)) for rank in range(3)]
    assert ranks(one_of(*filter(None, read)), is_apart) == {}


def test_one_process_tells_nothing() -> None:
    (read,) = filter(None, [named(struct_of(b"MPI_COMM_WORLD", 0, 1))])
    assert ranks(one_of(read), is_apart) == {}


def test_jobs_have_the_same_ranks() -> None:
    """Two jobs, and a communicator of one of them that is no job's own one."""
    read = [named(struct_of(b"MPI_COMM_WORLD", 0, rank)) for rank in range(2)]
    worlds = one_of(*filter(None, read)) | one_of(*filter(None, read), first=20)
    split = named(struct_of(b"MPI COMMUNICATOR 3 SPLIT FROM 0", 3, 5))
    assert split
    found = ranks(worlds | {Member(10, 0x8000): split}, is_apart)
    assert [found[Member(pid, 0x7000)] for pid in (10, 11, 20, 21)] == [0, 1, 0, 1]
    assert found[Member(10, 0x8000)] == 5
    assert ranks(worlds, lambda one, other: False) == {}, "nobody knows that these are two jobs"
    assert jobs(list(worlds), is_apart).keys() == {10, 20}


@pytest.mark.parametrize(
    ("name", "size"),
    [("MPI_FLOAT", 4), ("MPI_DOUBLE", 8), ("MPI_BYTE", 1), ("MPI_UINT16_T", 2), ("MPI_2INT", 8), ("MPI_FOO", 0)],
)
def test_types_of_open_mpi(name: str, size: int) -> None:
    assert type_size(b"\0" * 80 + b"OPAL_FLOAT4".ljust(160, b"\0") + name.encode() + b"\0") == size


@pytest.mark.parametrize(
    ("handle", "size"), [(0x4C00040A, 4), (0x4C00080B, 8), (0x4C00100C, 16), (0x8C000001, 0), (0x0C000000, 0)]
)
def test_types_of_mpich(handle: int, size: int) -> None:
    """MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE; one that a program has made; none."""
    assert handle_size(handle) == size
