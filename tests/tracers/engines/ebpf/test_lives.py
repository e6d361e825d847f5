"""Processes, and their address spaces, that rows are of."""

from __future__ import annotations

import pytest
from stallscope.converters.model.calls import CallTimes
from stallscope.tracers.engines.ebpf.lives import Lives
from stallscope.tracers.engines.rows import Row, Timed
from stallscope.tracers.kernel.records import ExecRecord, Origin, ThreadRecord, pack_thread, parse_thread
from stallscope.tracers.symbols.process import NO_PID, ProcessSpaces


def thread(life: int, lived: int, *, first: int = 0, tgid: int = 7) -> ThreadRecord:
    found = parse_thread(pack_thread((tgid, tgid), life, "preempted", 0, lived))
    return ThreadRecord(1000, b"x", found._replace(first=first or life), exited=True)


def origin(life: int, tgid: int = 7) -> Origin:
    return Origin(0, 0, 0, tgid, tgid, life, 1)


@pytest.fixture
def spaces() -> ProcessSpaces:
    """Two processes with the pid 7, of which each executes a program."""
    made = ProcessSpaces(fd_budget=0)
    for begin in (100, 200):
        made.fork(1, 7, begin)
        made.exec(7, begin + 50)
    return made


def test_processes_of_one_pid(spaces: ProcessSpaces) -> None:
    execs = [ExecRecord(7, 151, 101, 1, 1), ExecRecord(7, 251, 201, 3, 3)]
    lives = Lives([thread(2, 151, first=1), thread(4, 251, first=3)], execs, spaces)
    numbered = [lives.numbered(origin(life)) for life in (1, 2, 3, 4, 5)]
    assert [each.tgid for each in numbered] == [NO_PID, NO_PID, 7, 7, 7]
    assert [lives.epoch(each) for each in numbered] == [0, 1, 0, 1, -1], "nothing is known of the last one"
    assert [lives.threads.get(life) for life in (1, 2, 3, 4, 5)] == [1, 1, 3, 3, None]
    assert [row.origin.tgid for row in lives.rows([Row(origin(life), "", ()) for life in (1, 4)])] == [NO_PID, 7]
    timed = [Timed(origin(life), CallTimes("f", "", 7, "")) for life in (1, 4)]
    assert [each.origin.tgid for each in lives.timed(timed)] == [NO_PID, 7]
    assert [each.thread.key.tgid for each in lives.records([thread(2, 151), thread(4, 251)])] == [NO_PID, 7]


def test_an_unknown_life_of_a_process_with_one_program() -> None:
    made = ProcessSpaces(fd_budget=0)
    made.fork(1, 7, 100)
    lives = Lives([], [], made)
    assert (lives.numbered(origin(5)).tgid, lives.epoch(origin(5))) == (7, 0)
    rows = [Row(origin(5), "", ())]
    assert lives.rows(rows) == rows


def test_threads_of_one_address_space_are_alike(spaces: ProcessSpaces) -> None:
    lives = Lives([thread(life, when) for life, when in ((1, 110), (2, 120), (3, 160), (4, 210), (5, 299))], [], spaces)
    assert lives.alike() == {1: 1, 2: 1, 3: 3, 4: 4, 5: 5}


def test_when_perf_events_know_nothing() -> None:
    lives = Lives([thread(2, 151, first=1)], [ExecRecord(7, 151, 101, 1, 1)], ProcessSpaces(fd_budget=0))
    assert [lives.epoch(origin(life)) for life in (1, 2)] == [0, 0]
