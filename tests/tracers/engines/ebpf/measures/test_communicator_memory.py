"""Memory of communicators. Those of other processes: tests/live/test_collectives.py."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import time
from collections.abc import Iterator

import numpy as np
import pytest
from collective_calls import COMM, Table
from numpy.typing import NDArray
from stallscope.converters.collectives.meetings import Member
from stallscope.tracers.engines.ebpf.measures.argument_records import RECORD
from stallscope.tracers.engines.ebpf.measures.communicator_memory import BYTES, CommunicatorMemory

HASH = 0x9E3779B97F4A7C15
PLACE = 1_181_408
NAMES = ("ncclAllReduce", "ncclCommInitRank", "ncclCommSplit", "MPI_Allreduce", "ncclSend", "ncclCommDestroy")
ALL_REDUCE, INIT, SPLIT, MPI, SEND, DESTROY = range(len(NAMES))


@pytest.fixture
def communicator() -> Iterator[int]:
    """Address of memory of this process that is as long as a communicator, and not much longer."""
    memory = mmap.mmap(-1, 1_200_128)
    memory[PLACE : PLACE + 16] = struct.pack("<Qii", HASH, 1, 4)
    begin = (ctypes.c_char * len(memory)).from_buffer(memory)
    yield ctypes.addressof(begin)
    del begin
    memory.close()


def row(function: int, *arguments: int, pid: int = 0, made: int = 0) -> NDArray[np.void]:
    made_of = np.zeros(1, RECORD)
    made_of["function"], made_of["pid"], made_of["made"] = function, pid or os.getpid(), made
    made_of["arguments"][0, : len(arguments)] = arguments
    return made_of


def all_reduce(comm: int, pid: int = 0) -> NDArray[np.void]:
    return row(ALL_REDUCE, 1, 2, 3, 7, 0, comm, pid=pid)


def members(memory: CommunicatorMemory) -> dict[Member, list[tuple[int, ...]]]:
    return {member: rows.tolist() for member, rows in memory.of(Table().made()).memory.items()}


def test_a_communicator_is_read_at_its_first_call(communicator: int) -> None:
    memory = CommunicatorMemory()
    memory.look(np.concatenate([all_reduce(communicator)] * 3), NAMES.__getitem__)
    found = members(memory)
    assert found.keys() == {Member(os.getpid(), communicator)}
    # Other memory may follow.
    assert found[Member(os.getpid(), communicator)][0] == (PLACE, HASH, 1, 4)
    ctypes.memset(communicator, 0, 1_200_128)
    memory.look(all_reduce(communicator), NAMES.__getitem__)
    assert members(memory) == found, "once"


def test_others_are_not_read(communicator: int) -> None:
    memory = CommunicatorMemory()
    memory.look(row(INIT, 1, 4, 1, made=communicator), NAMES.__getitem__)
    memory.look(all_reduce(communicator), NAMES.__getitem__)
    memory.look(row(MPI, 1, 2, 3, 4, 5, communicator + 8), NAMES.__getitem__)
    assert members(memory) == {}


def test_one_with_messages_alone_is(communicator: int) -> None:
    memory = CommunicatorMemory()
    memory.look(row(SEND, 1, 2, 7, 0, communicator), NAMES.__getitem__)
    assert members(memory).keys() == {Member(os.getpid(), communicator)}


def test_communicators_and_types_of_mpi() -> None:
    """Both are read once, and handles that are no addresses never."""
    world = ctypes.create_string_buffer(b"\0" * 64 + b"MPI_COMM_WORLD".ljust(64, b"\0") + struct.pack("<ii", 0, 3), 512)
    kind = ctypes.create_string_buffer(b"\0" * 80 + b"OPAL_FLOAT4".ljust(80, b"\0") + b"MPI_FLOAT", 512)
    at = ctypes.addressof(world) & ~7, ctypes.addressof(kind) & ~7
    memory, table = CommunicatorMemory(), Table()
    memory.look(row(MPI, 1, 2, 3, at[1], 5, at[0]), NAMES.__getitem__)
    memory.look(row(MPI, 1, 2, 3, 0x4C00040A, 5, 0x44000000), NAMES.__getitem__)
    ctypes.memset(at[1], 0, 512)
    memory.look(row(MPI, 1, 2, 3, at[1], 5, at[0]), NAMES.__getitem__)
    found = memory.of(table.made())
    assert {member.comm: (each.name, each.numbers[4]) for member, each in found.named.items()} == {
        at[0]: ("MPI_COMM_WORLD", 3)
    }
    assert found.types == {(os.getpid(), at[1]): 4}


def test_a_split_is(communicator: int) -> None:
    memory = CommunicatorMemory()
    memory.look(row(SPLIT, 1, made=communicator), NAMES.__getitem__)
    memory.look(all_reduce(communicator), NAMES.__getitem__)
    assert members(memory).keys() == {Member(os.getpid(), communicator, 1)}


def test_what_comes_to_its_address_is_another_one(communicator: int) -> None:
    memory = CommunicatorMemory()
    memory.look(all_reduce(communicator), NAMES.__getitem__)
    memory.look(row(DESTROY, communicator), NAMES.__getitem__)
    memory.look(row(SPLIT, 1, made=communicator), NAMES.__getitem__)
    ctypes.memmove(communicator + PLACE, struct.pack("<Qii", HASH + 1, 0, 2), 16)
    memory.look(all_reduce(communicator), NAMES.__getitem__)
    found = members(memory)
    assert [found[Member(os.getpid(), communicator, number)][0][1:] for number in (0, 2)] == [
        (HASH, 1, 4),
        (HASH + 1, 0, 2),
    ]
    memory.look(np.concatenate([row(DESTROY, communicator), row(INIT, 1, 2, 0, made=communicator)]), NAMES.__getitem__)
    memory.look(all_reduce(communicator), NAMES.__getitem__)
    assert members(memory) == found, "the id tells"


def test_memory_of_one_that_has_ended_is_not_read_later(communicator: int) -> None:
    memory, table = CommunicatorMemory(), Table()
    table.reduce(os.getpid(), 0, comm=communicator)
    memory.look(row(DESTROY, communicator), NAMES.__getitem__)
    assert memory.of(table.made()).memory == {}


def test_calls_that_have_not_returned(communicator: int) -> None:
    """The table has them; nothing was read before."""
    table = Table()
    table.reduce(os.getpid(), 0, comm=communicator)
    assert CommunicatorMemory().of(table.made()).memory.keys() == {Member(os.getpid(), communicator)}


def test_what_cannot_be_read() -> None:
    memory = CommunicatorMemory()
    memory.look(np.concatenate([all_reduce(COMM), all_reduce(0), all_reduce(1 << 63)]), NAMES.__getitem__)
    memory.look(all_reduce(COMM, pid=1 << 22), NAMES.__getitem__)
    assert members(memory) == {}
    assert BYTES >= PLACE + 16


GLOO = ("c10d::ProcessGroupGloo::allreduce", "c10d::ProcessGroupGloo::ProcessGroupGloo")


def test_groups_of_gloo_are_read_at_their_first_call(communicator: int) -> None:
    memory, first = CommunicatorMemory(), row(0, 1, communicator)
    ctypes.memmove(communicator, struct.pack("<2Q2i", 0x7F5512345678, 1 << 32 | 3, 1, 4), 24)
    memory.look(first, GLOO.__getitem__)
    ctypes.memset(communicator, 0, 64)
    memory.look(first, GLOO.__getitem__)
    found = memory.of(Table().made())
    assert (found.memory, found.numbers) == ({}, {Member(os.getpid(), communicator): {16: (1, 4)}})


def test_a_group_of_gloo_that_is_made_is_another_one(communicator: int) -> None:
    memory = CommunicatorMemory()
    memory.look(np.concatenate([row(0, 1, communicator), row(1, communicator, 1, 2, 4)]), GLOO.__getitem__)
    memory.look(row(0, 1, communicator), GLOO.__getitem__)
    memory.look(row(0, 1, COMM, pid=1 << 22), GLOO.__getitem__)
    numbers = memory.of(Table().made()).numbers
    assert {member.number for member in numbers if member.pid == os.getpid()} == {1}
    assert numbers[Member(1 << 22, COMM)] == {}


def test_words_that_may_count_are_read_again(communicator: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stallscope.tracers.engines.ebpf.measures.communicator_memory._BETWEEN", 0)
    memory = CommunicatorMemory()
    counter = ctypes.c_uint64.from_address(communicator + PLACE + 10_160)
    begin = time.monotonic_ns()
    for number in (7, 8, 9):
        counter.value = number
        memory.look(all_reduce(communicator), NAMES.__getitem__)
    member = Member(os.getpid(), communicator)
    counts = memory.of(Table().made(), begin).counts[member]
    counted = [dict(each.words.tolist())[PLACE + 10_160] for each in counts]
    assert counted == [7, 8, 9, 9], "and at the end"
    times = [time_ for each in counts for time_ in (each.before, each.after)]
    assert times == sorted(times)
    assert times[0] > 0 and times[-1] < time.monotonic_ns() - begin
    memory.look(row(DESTROY, communicator), NAMES.__getitem__)
    counter.value = 10
    memory.look(all_reduce(communicator), NAMES.__getitem__)
    assert len(memory.of(Table().made(), begin).counts[member]) == 4, "what is there now is another one"
