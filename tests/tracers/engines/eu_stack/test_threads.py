from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from stallscope.converters.model import Frame, Stack
from stallscope.tracers.base import procfs
from stallscope.tracers.engines.eu_stack import threads as module
from stallscope.tracers.engines.eu_stack.threads import Threads, started
from stallscope.tracers.engines.named_rows import Account

F: Stack = (Frame("f"),)
G: Stack = (Frame("g"),)
MINUTE = 60_000_000_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> dict[int, tuple[int, int]]:
    """Clock of schedstat, by tid; threads that are missing are gone."""
    times: dict[int, tuple[int, int]] = {2: (1000, 500)}
    monkeypatch.setattr(procfs, "schedstat", lambda _pid, tid: times.get(tid))
    monkeypatch.setattr(module, "started", lambda _pid, _tid: -MINUTE)
    monkeypatch.setattr(procfs, "tids", lambda _pid: list(times))
    monkeypatch.setattr(procfs, "comm", lambda _pid, tid: f"thread {tid}")
    monkeypatch.setattr(procfs, "state", lambda tid: "S" if tid in times else "")
    return times


def taken(threads: Threads, now: int) -> tuple[Account, dict[tuple[str, str], list[int]]]:
    (account,), rows = threads.finish(now)
    assert account.on_cpu + account.runnable + account.blocked.total() == account.ended - account.began
    assert sum(row[0] for row in rows.values()) == account.ended - account.began
    return account, {(place.state, place.stack[0].name): row for place, row in rows.items()}


def test_samples_divide_the_times(clock: dict[int, tuple[int, int]]) -> None:
    threads = Threads(100)
    threads.look(1, 100)
    threads.sample(2, "R", F, 10)
    threads.sample(2, "S", F, 10)
    threads.sample(2, "S", G, 20)
    threads.sample(2, "D", G, 10)
    clock[2] = (1300, 600)
    threads.look(1, 1000)
    account, rows = taken(threads, 1100)
    assert (account.on_cpu, account.runnable, account.exited) == (300, 100, False)
    assert rows == {
        ("running", "f"): [300, 1],
        ("runnable-woken", "f"): [100, 0],
        ("interruptible", "f"): [150, 1],
        ("interruptible", "g"): [300, 1],
        ("uninterruptible", "g"): [150, 1],
    }
    assert account.blocked == {"interruptible": 450, "uninterruptible": 150}
    assert threads.names == {2: "thread 2"}


def test_held_and_woken(clock: dict[int, tuple[int, int]]) -> None:
    """The time in which eu-stack held the thread is not that of a wait; one that was woken was not on a core."""
    threads = Threads(100)
    threads.look(1, 100)
    threads.sample(2, "R", F, 10)
    threads.sample(2, "W", G, 10)
    threads.sample(2, "S", G, 10)
    threads.stop(2, 30)
    threads.stop(2, 20)
    threads.stop(3, 1)
    clock[2] = (1300, 600)
    account, rows = taken(threads, 1100)
    assert rows == {
        ("traced", "[stopped by eu-stack]"): [50, 0],
        ("interruptible", "g"): [950, 1],
    }
    threads.look(1, 1100)
    account, rows = taken(threads, 1100)
    assert account.blocked == {"traced": 50, "interruptible": 550}
    assert rows == {
        ("running", "f"): [300, 1],
        ("runnable-woken", "f"): [50, 0],
        ("runnable-woken", "g"): [50, 1],
        ("traced", "[stopped by eu-stack]"): [50, 0],
        ("interruptible", "g"): [550, 1],
    }


def test_what_was_not_sampled_is_told(clock: dict[int, tuple[int, int]]) -> None:
    threads = Threads(100)
    threads.look(1, 100)
    clock[2] = (1300, 600)
    threads.look(1, 1000)
    _, rows = taken(threads, 1100)
    assert rows == {
        ("running", "[not sampled]"): [300, 0],
        ("runnable-woken", "[not sampled]"): [100, 0],
        ("other", "[not sampled]"): [600, 0],
    }


def test_a_thread_that_ended(clock: dict[int, tuple[int, int]]) -> None:
    threads = Threads(0)
    threads.look(1, 100)
    threads.sample(2, "S", F, 1)
    clock[2] = (1000, 500)
    threads.look(1, 400)
    del clock[2]
    threads.look(1, 900)
    account, rows = taken(threads, 1000)
    assert (account.began, account.ended, account.exited) == (100, 400, True)
    assert rows == {("interruptible", "f"): [300, 1]}


@pytest.mark.parametrize("began_before", [False, True])
def test_a_thread_that_is_new(
    began_before: bool, clock: dict[int, tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time that it had before it was met is in its account, unless it began before the trace: its process is new to
    us."""
    threads = Threads(MINUTE)
    clock[2] = (3_000_000_000, 1_000_000_000)
    start = MINUTE - 20_000_000 if began_before else 2 * MINUTE
    monkeypatch.setattr(module, "started", lambda _pid, _tid: start)
    threads.look(1, 2 * MINUTE + 5_000_000_000)
    clock[2] = (4_000_000_000, 1_000_000_000)
    threads.look(1, 2 * MINUTE + 7_000_000_000)
    account, _ = taken(threads, 2 * MINUTE + 7_000_000_000)
    if began_before:
        assert (account.ended - account.began, account.on_cpu, account.runnable) == (2_000_000_000, 1_000_000_000, 0)
    else:
        assert account.ended - account.began == 7_000_000_000
        assert (account.on_cpu, account.runnable) == (4_000_000_000, 1_000_000_000)


def test_a_thread_ran_for_no_longer_than_it_was_there(
    clock: dict[int, tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel tells to some 10 ms when it began."""
    threads = Threads(MINUTE)
    monkeypatch.setattr(module, "started", lambda _pid, _tid: 2 * MINUTE + 5)
    clock[2] = (80, 20)
    threads.look(1, 2 * MINUTE + 100)
    account, _ = taken(threads, 2 * MINUTE + 100)
    assert (account.on_cpu, account.runnable, account.ended - account.began) == (80, 20, 100)


def test_ends_that_nobody_saw_are_told(clock: dict[int, tuple[int, int]]) -> None:
    threads = Threads(0)
    clock[3] = (5, 5)
    threads.look(1, 0)
    threads.look(1, 100)
    del clock[3]
    assert threads.unseen_ends == []
    threads.look(1, 130)
    threads.look(1, 200)
    assert threads.unseen_ends == [30]
    assert threads.pids == {1}
    del clock[2]
    threads.look(1, 300)
    assert sorted(threads.unseen_ends) == [30, 100]
    assert threads.pids == set()


def test_time_on_cores_of_processes_that_have_ended(clock: dict[int, tuple[int, int]]) -> None:
    """The time that they can have had since the last look is part of it."""
    threads = Threads(0)
    clock[3] = (5, 5)
    threads.look(1, 0)
    clock |= {2: (1040, 500), 3: (8, 5)}
    threads.look(1, 100)
    del clock[3]
    threads.look(1, 130)
    assert threads.ended_on_cpu == 0, "the process lives"
    del clock[2]
    threads.look(1, 200)
    assert threads.ended_on_cpu == 40 + 70 + 3 + 30


def test_a_list_of_threads_that_is_cut_short(
    clock: dict[int, tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = Threads(0)
    threads.look(1, 0)
    monkeypatch.setattr(procfs, "tids", lambda _pid: [])
    threads.look(1, 100)
    assert threads.unseen_ends == []


def test_a_main_thread_that_has_ended(clock: dict[int, tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """A main thread is there until its parent has seen it, with all that it had of the cores."""
    threads = Threads(0)
    threads.look(2, 0)
    clock[2] = (1040, 510)
    monkeypatch.setattr(procfs, "state", lambda _tid: "Z")
    threads.look(2, 100)
    threads.look(2, 500)
    account, _ = taken(threads, 600)
    assert (account.on_cpu, account.runnable, account.ended) == (40, 10, 50)
    assert threads.unseen_ends == [50]
    assert threads.ended_on_cpu == 40, "all of it is known"


def test_a_tid_that_another_thread_gets(clock: dict[int, tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    threads = Threads(0)
    threads.look(1, 0)
    old = clock.pop(2)
    threads.look(1, 100)
    clock[2] = old
    threads.look(1, 200)
    assert len(threads.finish(200)[0]) == 1, "the same one"
    clock[2] = (7, 3)
    monkeypatch.setattr(module, "started", lambda _pid, _tid: MINUTE)
    threads.look(1, MINUTE + 10)
    one, other = threads.finish(MINUTE + 10)[0]
    assert (one.ended, one.on_cpu) == (0, 0)
    assert (other.began, other.ended, other.on_cpu) == (MINUTE, MINUTE + 10, 7)


def test_names_are_read_again(clock: dict[int, tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread is named a little after its beginning; what it is called later is of use, too."""
    name = "python3"
    monkeypatch.setattr(procfs, "comm", lambda _pid, _tid: name)
    threads = Threads(0)
    threads.look(1, 0)
    assert threads.names == {2: "python3"}
    name = "loader"
    threads.look(1, 25_000_000)
    assert threads.names == {2: "loader"}
    name = "other"
    threads.look(1, 26_000_000)
    assert threads.names == {2: "loader"}, "not at every look"
    threads.look(1, 60_000_000)
    assert threads.names == {2: "other"}


def test_when_a_thread_began() -> None:
    before = time.monotonic_ns()
    with ThreadPoolExecutor(1) as pool:
        tid = pool.submit(threading.get_native_id).result()
        began = started(os.getpid(), tid)
    assert before - 30_000_000 <= began <= time.monotonic_ns()
    assert started(1 << 22, 1 << 22) == 0


def test_times_that_exceed_the_wall_clock(clock: dict[int, tuple[int, int]]) -> None:
    """schedstat is read a little later than the clock."""
    threads = Threads(0)
    threads.look(1, 0)
    clock[2] = (1000 + 150, 500 + 10)
    threads.look(1, 100)
    account, _ = taken(threads, 100)
    assert (account.on_cpu, account.runnable) == (100, 0)


def test_unknown_threads_and_zombies_have_no_samples(clock: dict[int, tuple[int, int]]) -> None:
    threads = Threads(0)
    threads.sample(3, "S", F, 1)
    threads.look(1, 0)
    threads.sample(2, "Z", F, 1)
    _, rows = taken(threads, 100)
    assert rows == {("other", "[not sampled]"): [100, 0]}


def test_too_many_threads_are_counted(clock: dict[int, tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_THREADS", 0)
    threads = Threads(0)
    threads.look(1, 0)
    assert threads.left_out == 1


def test_threads_that_come_later_were_created(clock: dict[int, tuple[int, int]]) -> None:
    threads = Threads(100)
    threads.look(1, 100)
    clock[3] = (0, 0)
    threads.look(1, 200)
    assert {account.tid: account.created for account in threads.finish(300)[0]} == {2: False, 3: True}


def test_rare_stacks_are_put_together(clock: dict[int, tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """A process can make each of its stacks a new one."""
    monkeypatch.setattr(module, "_MOST_KEPT", module._FRAME + len(F[0].name))
    threads = Threads(100)
    threads.look(1, 100)
    for stack in (F, G, F):
        threads.sample(2, "S", stack, 10)
    clock[2] = (1000, 500)
    _, rows = taken(threads, 1100)
    assert rows.keys() >= {("interruptible", "f"), ("interruptible", "[other stacks]")}
    assert ("interruptible", "g") not in rows
    assert threads.put_together == 1
