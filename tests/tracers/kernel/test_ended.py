"""Packed accounts of threads that ended. Their layout: test_records.py."""

from __future__ import annotations

from stallscope.tracers.kernel import records
from stallscope.tracers.kernel.ended import _EXITING_OFFSET, EndedThreads
from stallscope.tracers.kernel.records import pack_thread


def account(life: int, start: int, end: int, *, exiting: bool = False) -> bytes:
    thread = pack_thread((life, 14), life, "preempted", records.ON_CPU, start)
    data = bytearray(records._THREAD_RECORD_HEAD.pack(records.RECORD_EXIT, 0, end, b"x\0junk") + thread)
    data[_EXITING_OFFSET] = exiting
    return bytes(data)


def ended(*accounts: bytes) -> EndedThreads:
    found = EndedThreads()
    for data in accounts:
        found.add(data)
    return found


def test_the_shortest_accounts_are_taken() -> None:
    threads = ended(
        account(1, 0, 50), account(2, 10, 20), account(3, 0, 5, exiting=True), account(4, 30, 36), account(5, 0, 99)
    )
    taken = threads.take_shortest(1, before=99)
    assert taken["first"].tolist() == [4, 2], "not the longest, nor who is not gone, nor who ended too late"
    assert taken["key"]["tid"].tolist() == [4, 2]
    assert taken["lived"].tolist() == [30, 10]
    assert [comm[:2] for comm in taken["comm"].tolist()] == [b"x\0"] * 2, "what follows is not cleared"
    assert len(threads) == 3
    assert len(threads.take_shortest(2, before=100)) == 0
    assert threads.processes() == {(14, 0), (14, 0)}


def test_a_thread_that_is_gone_later_has_its_last_record() -> None:
    threads = ended(account(1, 0, 50, exiting=True))
    assert (threads.exiting, len(threads)) == (1, 1)
    threads.add(account(1, 0, 60))
    assert (threads.exiting, len(threads)) == (0, 1)
    assert threads.take_shortest(0, before=100)["end"].tolist() == [60]


def test_those_of_the_next_interval() -> None:
    threads = ended(account(1, 0, 50), account(2, 0, 100), account(3, 0, 120, exiting=True))
    later = threads.split(100)
    assert (len(threads), len(later), later.exiting) == (1, 2, 1)
    assert [len(threads.others(there)) for there in (set(), {(1, 0)})] == [1, 0]
