"""Work of the threads that wait for a lock, while they do not: there the lock's holder is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from stallscope.converters.model import Frame
from stallscope.converters.summary.summarize import summarize
from summary_profiles import EXE, LIBC, MS, POOL, SECOND, Tracee, empty, kernel, user

WORKER = (*user(LIBC, "start_thread"), *user(EXE, "worker", "append"))
LOCK = (
    *WORKER,
    *user(LIBC, "pthread_mutex_lock", "__lll_lock_wait"),
    *kernel("__x64_sys_futex", "do_futex", "futex_wait"),
)
FSYNC = (*WORKER, *user(EXE, "flush_log"), *user(LIBC, "fsync"), *kernel("__x64_sys_fsync", "ext4_sync_file"))
NAP = (
    *WORKER,
    *user(EXE, "flush_log"),
    *user(LIBC, "usleep", "clock_nanosleep"),
    *kernel("__x64_sys_clock_nanosleep", "do_nanosleep"),
)
PAUSE = (*WORKER, *user(LIBC, "usleep", "clock_nanosleep"), *kernel("__x64_sys_clock_nanosleep", "do_nanosleep"))


def second(does: Callable[[Tracee], object], workers: int = 8) -> str:
    """Sentence beside of threads that wait for a lock for 8 of 10 seconds; ``does``: what they do otherwise."""
    profile = empty()
    Tracee(profile, 100, "store", 100, "store").wait(POOL, "interruptible", 10 * SECOND, 1)
    for tid in range(101, 101 + workers):
        thread = Tracee(profile, 100, "store", tid, "writer")
        thread.wait(LOCK, "interruptible", 8 * SECOND, 1000, most=20 * MS)
        does(thread)
    answer = summarize(profile).answer
    assert "pthread_mutex_lock" in answer[0]
    _, found, rest = answer[0].partition("; the rest of their time: ")
    return f"The rest of their time: {rest}" if found else ""


def test_where_the_holder_is_blocked() -> None:
    told = second(lambda thread: thread.wait(FSYNC, "uninterruptible", SECOND, 1000).run(900 * MS))
    blocked = "blocked in append → flush_log → fsync"
    assert told == f"The rest of their time: 10.1 % {blocked}, 9.1 % on a core."


def test_a_holder_that_waits_for_a_core() -> None:
    states = ("runnable-preempted", "runnable-woken")
    told = second(lambda thread: [thread.wait(FSYNC, state, SECOND, 1000) for state in states])
    assert told == ("The rest of their time: 20.0 % waiting for a core (100.0 % of it in append → flush_log → fsync).")


def test_a_holder_that_sleeps() -> None:
    told = second(lambda thread: thread.wait(NAP, "interruptible", SECOND, 1000).run(MS))
    assert told == "The rest of their time: 11.1 % sleeping in append → flush_log → usleep → clock_nanosleep."


def test_what_was_not_sampled_is_no_place() -> None:
    nowhere = (Frame("[not sampled]", "other"),)
    assert not second(lambda thread: thread.wait(nowhere, "runnable-woken", 2 * SECOND, 1000))
    assert not second(lambda thread: thread.wait(nowhere, "uninterruptible", 2 * SECOND, 1000))


@pytest.mark.parametrize(
    "does",
    [
        lambda thread: thread.wait(PAUSE, "interruptible", 2 * SECOND, 1000),  # outside of the lock, as a rule
        lambda thread: thread.run(2 * SECOND),  # nobody knows where
        lambda thread: thread.wait(FSYNC, "uninterruptible", 10 * MS, 10),  # 8 × 10 ms of 10 s hold nobody up
    ],
)
def test_what_holds_nobody_up_is_not_told(does: Callable[[Tracee], object]) -> None:
    assert not second(does)
