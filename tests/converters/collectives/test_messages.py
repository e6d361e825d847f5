"""Sends and receives that are joined, and who waits for whom."""

from __future__ import annotations

from dataclasses import replace

import pytest
from collective_calls import (
    COMM,
    END,
    MPI_IRECV,
    MPI_RECV,
    MPI_SEND,
    MPI_SENDRECV,
    MPI_WAIT,
    MS,
    RECEIVE,
    SEND,
    START,
    STREAM,
    SYNC,
    Table,
)
from stallscope.converters.collectives.meetings import Member
from stallscope.converters.collectives.mpi_memory import WORLD, Named
from stallscope.converters.collectives.records import OPEN
from stallscope.converters.collectives.told import Told, Trace, told
from stallscope.converters.model.collectives import UNKNOWN, MessagePair, Messages

AT = 0x7F00_0000_0000
FLOATS = AT + 0x1000
STATUS = 0x7FFF_0000_0000


def of_mpi(table: Table, ranks: int = 2, end: int = 200 * MS) -> Told:
    """Ranks 0, 1, … are processes 10, 11, …"""
    named = {Member(10 + rank, AT): Named(WORLD, {4: rank}) for rank in range(ranks)}
    types = {(10 + rank, FLOATS): 4 for rank in range(ranks)}
    return told(replace(table.made(), named=named, types=types), Trace(end, {}))


def messages_of(table: Table, ranks: int = 2, end: int = 200 * MS) -> Messages:
    (found,) = of_mpi(table, ranks, end).communicators
    assert found.messages
    assert [each.rank for each in found.ranks] == list(range(ranks))
    return found.messages


def send(table: Table, began: int, *, pid: int = 10, to: int = 1, tag: int = 7, ended: int = -2) -> None:
    table.add(pid, began, MPI_SEND, 1, 8, FLOATS, to, tag, AT, ended=ended)


def receive(table: Table, began: int, ended: int, *, pid: int = 11, of: int = 0, tag: int = 7) -> None:
    table.add(pid, began, MPI_RECV, 1, 8, FLOATS, of & 0xFFFFFFFF, tag & 0xFFFFFFFF, AT, 0, ended=ended)


def late_sends(number: int = 8) -> Table:
    """Messages in steps of 10 ms, sent 4 ms after the receiver has come, which it gets 1 ms later."""
    table = Table()
    for step in range(number):
        receive(table, step * 10 * MS, step * 10 * MS + 5 * MS)
        send(table, step * 10 * MS + 4 * MS)
    return table


def test_a_receiver_that_waits() -> None:
    assert messages_of(late_sends()).pairs == (MessagePair(0, 1, 8, 8 * 32, 8, 32 * MS, 0),)


def test_a_sender_that_waits() -> None:
    table = Table()
    for step in range(8):
        send(table, step * 10 * MS, ended=step * 10 * MS + 7 * MS)
        receive(table, step * 10 * MS + 6 * MS, step * 10 * MS + 7 * MS)
    assert messages_of(table).pairs == (MessagePair(0, 1, 8, 8 * 32, 0, 0, 48 * MS),)


def test_a_send_that_does_not_wait_for_the_receiver() -> None:
    """Receivers come 4 ms later, as the messages had been taken before."""
    table = late_sends()
    for step in range(4):
        send(table, 100 * MS + step * 10 * MS)
        receive(table, 104 * MS + step * 10 * MS, 104 * MS + step * 10 * MS + 1000)
    (pair,) = messages_of(table).pairs
    assert (pair.messages, pair.receiver_waited, pair.sender_waited) == (12, 32 * MS, 0)


def test_sends_before_the_trace() -> None:
    """Two messages that were sent before are received first."""
    table = late_sends()
    table.rows = [row for row in table.rows if row[3] != MPI_SEND or row[1] > 20 * MS]
    assert messages_of(table).pairs == (MessagePair(0, 1, 6, 6 * 32, 6, 24 * MS, 0),)


def test_a_receive_before_the_trace() -> None:
    table = late_sends()
    table.rows = [row for row in table.rows if row[0]]
    assert messages_of(table).pairs == (MessagePair(0, 1, 7, 7 * 32, 7, 28 * MS, 0),)


@pytest.mark.parametrize(("number", "joined"), [(3, 0), (4, 4)])
def test_few_messages_tell_nothing(number: int, joined: int) -> None:
    (pair,) = messages_of(late_sends(number)).pairs
    assert (pair.messages, pair.unjoined) == (joined, number - joined)


def test_messages_of_which_none_was_waited_for() -> None:
    """All receives come when their messages are there: which is which is not known."""
    table = Table()
    for step in range(8):
        send(table, step * MS)
        receive(table, 50 * MS + step * MS, 50 * MS + step * MS + 1000)
    assert messages_of(table).pairs == (MessagePair(0, 1, 0, 0, 0, 0, 0, 8),)


def test_tags_are_told_apart() -> None:
    """Messages of tag 8 are received in the order in which they were sent, but not among those of tag 7."""
    table = late_sends()
    for step in range(8):
        receive(table, step * 10 * MS + 6 * MS, step * 10 * MS + 8 * MS, tag=8)
        send(table, step * 10 * MS + 7 * MS, tag=8)
    assert messages_of(table).pairs == (MessagePair(0, 1, 16, 16 * 32, 16, 40 * MS, 0),)


def test_one_that_is_not_sent_yet() -> None:
    table = late_sends()
    receive(table, 100 * MS, OPEN)
    (pair,) = messages_of(table, end=150 * MS).pairs
    assert (pair.messages, pair.receiver_waited) == (8, 82 * MS)


@pytest.mark.parametrize(("status", "unknown"), [(STATUS, 0), (0, 8)])
def test_messages_of_any_source(status: int, unknown: int) -> None:
    """The status tells whose it was, unless the program does not want one."""
    table = late_sends()
    table.rows = [
        (began, ended, pid, function, 7 << 32, (1, 8, FLOATS, 0xFFFFFFFF, 0xFFFFFFFF, AT, status, *[0] * 5))
        if function == MPI_RECV
        else (began, ended, pid, function, made, arguments)
        for began, ended, pid, function, made, arguments in table.rows
    ]
    found = messages_of(table)
    assert found.any_source == unknown
    assert [(each.messages, each.receiver_waited, each.unjoined) for each in found.pairs] == [
        (8, 32 * MS, 0) if not unknown else (0, 0, 8)
    ]


def test_nobody_and_ranks_that_are_not_here() -> None:
    table = late_sends()
    send(table, 100 * MS, to=5)
    send(table, 101 * MS, to=-2 & 0xFFFFFFFF)  # MPI_PROC_NULL of Open MPI
    receive(table, 102 * MS, 103 * MS, of=-2)
    found = messages_of(table)
    assert (found.unseen, [each.messages for each in found.pairs]) == (1, [8])


def test_one_call_that_sends_and_receives() -> None:
    """Each of two ranks sends to the other one; rank 1 comes 4 ms late."""
    table = Table()
    for step in range(8):
        for pid, late in ((10, 0), (11, 4 * MS)):
            other = 11 - pid
            arguments = (1, 8, FLOATS, other, 7, 2, 8, FLOATS, other, 7, AT, 0)
            table.add(pid, step * 10 * MS + late, MPI_SENDRECV, *arguments, ended=step * 10 * MS + 5 * MS)
    first, second = messages_of(table).pairs
    assert {first, second} == {
        MessagePair(1, 0, 8, 8 * 32, 8, 32 * MS, 0),
        MessagePair(0, 1, 8, 8 * 32, 0, 0, 32 * MS),
    }


def test_a_receive_that_is_begun_early() -> None:
    """Receives are waited for from 3 ms on only."""
    table = Table()
    for step in range(8):
        begin = step * 10 * MS
        table.add(11, begin, MPI_IRECV, 1, 8, FLOATS, 0, 7, AT, STATUS, made=0x5580_0000_1000)
        table.add(11, begin + 3 * MS, MPI_WAIT, STATUS, 0, 0, 0x5580_0000_1000, ended=begin + 5 * MS)
        send(table, begin + 4 * MS)
    assert messages_of(table).pairs == (MessagePair(0, 1, 8, 8 * 32, 8, 8 * MS, 0),)


def test_types_that_are_not_known_have_no_size() -> None:
    table = late_sends()
    (found,) = told(
        replace(table.made(), named={Member(10 + rank, AT): Named(WORLD, {4: rank}) for rank in range(2)}),
        Trace(200 * MS, {}),
    ).communicators
    assert found.messages and found.messages.pairs[0].bytes == UNKNOWN


def test_ranks_that_are_not_known() -> None:
    found = told(late_sends().made(), Trace(200 * MS, {}))
    assert (found.communicators, found.messages) == ([], 16)


def test_messages_of_nccl_in_groups() -> None:
    """The communicator is made in the trace: the first send belongs to the first receive. They are launched when the
    group ends, and done when the wait for the stream returns."""
    table = Table()
    for pid, rank in ((10, 0), (11, 1)):
        table.init(pid, rank)
    for step in range(2):
        for pid, late, function in ((10, 6 * MS, SEND), (11, 0, RECEIVE)):
            begin = (step + 1) * 10 * MS + late
            table.add(pid, begin, START)
            table.add(pid, begin + 10_000, function, 1, 8, 7, 11 - pid, COMM, STREAM)
            table.add(pid, begin + 20_000, END)
            table.add(pid, begin + 30_000, SYNC, STREAM, ended=(step + 1) * 10 * MS + 8 * MS)
    (found,) = told(table.made(), Trace(200 * MS, {})).communicators
    assert found.messages and found.messages.pairs == (MessagePair(0, 1, 2, 64, 2, 12 * MS, 0),)
