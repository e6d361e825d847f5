"""Main threads that wait for the end of their workers."""

from __future__ import annotations

import re

import pytest
from stallscope.converters.facts.coordinators import coordinators
from stallscope.converters.facts.wait_sums import add_up_waits, merged_threads
from stallscope.converters.model import Frame, Module, Profile, Stack
from stallscope.converters.summary.summarize import summarize
from summary_profiles import EXE, LIBC, MS, Tracee, empty, kernel, user

FUTEX = kernel("futex_wait_queue", "futex_wait")
SLEEP = (*user(EXE, "work", "nap"), *kernel("__x64_sys_clock_nanosleep", "do_nanosleep"))
LOCK = (*user(EXE, "handle_request", "wait_for_turn"), *user(LIBC, "sem_wait"), *FUTEX)
CHILD = (*user(EXE, "main", "run_tool"), *user(LIBC, "wait4"), *kernel("kernel_wait4", "do_wait"))


def waiting_in(function: str) -> Stack:
    """A function of the C library."""
    return (*user(EXE, "main"), *user(LIBC, function), *FUTEX)


def own(function: str) -> Stack:
    """A function that the program has named."""
    return (*user(EXE, "main", function), *user(LIBC, "pthread_cond_wait"), *FUTEX)


def script(function: str) -> Stack:
    """A function of Python's library."""
    scripts = (
        Frame("main", "python", file="/t/job.py", line=4),
        Frame(function, "python", file="/usr/lib/python3.11/threading.py", line=1112),
    )
    python = user(Module("/usr/bin/python3.11"), "PyThread_acquire_lock_timed")
    return (*scripts, *python, *user(LIBC, "sem_clockwait"), *FUTEX)


def job(where: Stack, *, moves: bool = False, workers: int = 3) -> Profile:
    """The main thread waits, workers wait for each other and sleep."""
    profile = empty()
    main = Tracee(profile, 1, "app", 1, "app").wait(where, "interruptible", 9_900 * MS, still=not moves)
    if moves:
        main.run(300 * MS)
    for tid in range(2, 2 + workers):
        worker = Tracee(profile, 1, "app", tid, "worker").run(500 * MS)
        worker.wait(LOCK, "interruptible", 7_500 * MS, 90).wait(SLEEP, "interruptible", 1_900 * MS, 90)
    return profile


@pytest.mark.parametrize(
    "where",
    [
        *map(waiting_in, ("pthread_join", "__pthread_clockjoin_ex")),
        script("join"),
        script("_wait_for_tstate_lock"),
        CHILD,
    ],
)
def test_what_the_workers_do_leads(where: Stack) -> None:
    (first, *_) = summarize(job(where)).answer
    assert first.startswith("75.8 % of the time of the 3 worker threads of app is spent waiting for other threads in ")
    assert "wait_for_turn" in first


@pytest.mark.parametrize(
    "profile",
    [
        job(own("await_result")),
        job(own("pthread_join")),
        job(script("wait")),
        job(waiting_in("pthread_join"), moves=True),
    ],
)
def test_another_wait_of_the_main_thread_leads_all_the_same(profile: Profile) -> None:
    first = summarize(profile).answer[0]
    assert re.search("of the time of the main thread of app is spent waiting (for another thread )?in ", first), first


NAP = (*user(EXE, "main", "report"), *user(LIBC, "sleep", "clock_nanosleep"), *kernel("do_nanosleep"))
BACKOFF = (*user(EXE, "main"), *user(Module("/usr/lib/libhttp.so.2"), "retry_later"), *NAP[2:])


PYTHON = Module("/usr/bin/python3.11")


def in_script(file: str, *inside: str) -> Stack:
    """A script sleeps, in these functions of the interpreter."""
    script = (Frame("main", "python", file="/t/job.py", line=4), Frame("wait", "python", file=file, line=9))
    return (*script, *user(PYTHON, "cfunction_vectorcall", *inside), *NAP[3:])


def reporter(where: Stack, each: int, worker: Stack = LOCK) -> str:
    """The first sentence on a main thread that sleeps for ``each`` again and again, beside a worker."""
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").wait(where, "interruptible", 10_000 * MS, 10_000 * MS // each)
    Tracee(profile, 1, "app", 2, "worker").run(500 * MS).wait(worker, "interruptible", 9_500 * MS, 900)
    return summarize(profile).answer[0]


@pytest.mark.parametrize("where", [NAP, in_script("/t/job.py", "time_sleep"), in_script("/t/job.py", "pysleep")])
def test_a_main_thread_that_sleeps_between_two_looks_is_no_trouble(where: Stack) -> None:
    assert reporter(where, 2_000 * MS).startswith("95.0 % of the time of the worker thread of app")


@pytest.mark.parametrize(
    ("where", "each", "worker"),
    [
        (BACKOFF, 2_000 * MS, LOCK),  # a library has its reasons
        (in_script("/usr/lib/python3/site-packages/tenacity/nap.py", "time_sleep"), 2_000 * MS, LOCK),
        (in_script("/t/job.py", "grpc_core_sleep"), 2_000 * MS, LOCK),
        ((*user(EXE, "main"), *user(Module("/usr/lib/libhttp.so.2"), "time_sleep"), *NAP[2:]), 2_000 * MS, LOCK),
        (NAP, 20 * MS, LOCK),  # it asks all the time
        (NAP, 2_000 * MS, (*user(EXE, "poll_sensor"), *NAP[2:])),  # the other one only sleeps, too
    ],
)
def test_another_sleep_of_the_main_thread_is_told(where: Stack, each: int, worker: Stack) -> None:
    assert "of the main thread of app is spent sleeping" in reporter(where, each, worker)


def test_a_coordinator_keeps_nobody_waiting() -> None:
    assert "main thread" not in reporter(NAP, 2_000 * MS)


def test_somebody_has_to_be_at_work() -> None:
    profile = job(waiting_in("pthread_join"))
    sums = add_up_waits(profile, merged_threads(profile.threads))
    assert coordinators(sums, {(1, 1)}, {(1, 2)}, {}) == {(1, 1)}
    assert not coordinators(sums, {(1, 1)}, {(1, 1), (9, 10)}, {})
    assert not coordinators(sums, set(), {(1, 2)}, {})


def test_a_lock_of_the_workers_is_not_weighed_as_if_it_delayed_nobody() -> None:
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").wait(waiting_in("pthread_join"), "interruptible", 10_000 * MS, still=True)
    Tracee(profile, 1, "app", 2, "holder").run(1_200 * MS).wait(SLEEP, "interruptible", 8_800 * MS, 90)
    mutex = (*user(EXE, "use"), *user(LIBC, "pthread_mutex_lock"), *FUTEX)
    for tid in (3, 4):
        Tracee(profile, 1, "app", tid, "user").run(2_800 * MS).wait(mutex, "interruptible", 7_200 * MS, 90)
    assert "use → pthread_mutex_lock" in summarize(profile).answer[0]


def test_workers_that_run_are_told_as_what_the_main_thread_waits_for() -> None:
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").wait(waiting_in("pthread_join"), "interruptible", 10_000 * MS, still=True)
    for tid in (2, 3):
        Tracee(profile, 1, "app", tid, "cruncher").run(6_000 * MS).wait(LOCK, "interruptible", 4_000 * MS, 90)
    (first, *_) = summarize(profile).answer
    assert first.startswith("100.0 % of the time of the main thread of app is spent waiting for another thread in ")
    assert "meanwhile the 2 cruncher threads" in first


@pytest.mark.parametrize(("joins", "leads"), [(1, "worker threads"), (3, "worker threads"), (40, "main thread")])
def test_a_program_that_is_traced_from_its_start_to_its_end(joins: int, leads: str) -> None:
    """The main thread runs before and after the join. One that joins more threads than there are has others, too."""
    profile = empty()
    main = Tracee(profile, 1, "app", 1, "app").run(20 * MS)
    main.wait(waiting_in("__pthread_clockjoin_ex"), "interruptible", 9_980 * MS, joins)
    for tid in range(2, 5):
        worker = Tracee(profile, 1, "app", tid, "worker").run(500 * MS)
        worker.wait(LOCK, "interruptible", 7_500 * MS, 90).wait(SLEEP, "interruptible", 1_900 * MS, 90)
    assert f"of the time of the {leads}" in summarize(profile).answer[0].replace("the 3 worker", "the worker")
