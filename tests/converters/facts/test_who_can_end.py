"""Threads that can end the waits of others."""

from __future__ import annotations

from stallscope.converters.facts.facts import Facts
from stallscope.converters.facts.who_can_end import ALONE, NO_PYTHON, nobody, others_of, waits_in_python
from stallscope.converters.model import Frame, Module, Profile, Stack
from summary_profiles import EXE, FUTEX, LIBC, MS, POOL, SECOND, SLEEP, WAIT_FOR_WORKER, Tracee, empty, facts_of, user

PYTHON = Module("/usr/bin/python3.11")
TEN = 10 * SECOND


def script(*names: str, library: str = "") -> Stack:
    """Functions of a script, the last one of Python's library if that is named."""
    frames = [Frame(name, "python", file="/t/job.py", line=4) for name in names]
    if library:
        frames[-1] = Frame(names[-1], "python", file=f"/usr/lib/python3.11/{library}", line=200)
    return tuple(frames)


GET = (
    *script("main", "next_batch", "Queue.get", library="queue.py"),
    *user(PYTHON, "lock_PyThread_acquire_lock", "PyThread_acquire_lock_timed"),
    *user(LIBC, "sem_clockwait"),
    *FUTEX,
)
NAP = (*script("run", "load"), *user(PYTHON, "time_sleep"), *SLEEP[2:])


def waiting(stack: Stack = GET, *, count: int = 1) -> Profile:
    """A process whose main thread waits for all of 10 s."""
    made = empty()
    tracee = Tracee(made, 1, "app", 1, "app")
    tracee.wait(stack, "interruptible", TEN, count)
    if count > 1:
        tracee.run(MS)
    return made


def of_main(made: Profile) -> str:
    facts = facts_of(made)
    (place,) = facts.waits_of((1, 1))
    return nobody(facts, (1, 1), place)


def others(made: Profile) -> list[tuple[int, int]]:
    facts: Facts = facts_of(made)
    return others_of(facts, (1, 1), next(iter(facts.waits_of((1, 1)))))


def test_it_has_no_other_thread() -> None:
    assert of_main(waiting()) == ALONE
    assert of_main(waiting(WAIT_FOR_WORKER)) == ALONE
    assert of_main(waiting(SLEEP)) == "", "a timer ends it"


def test_no_other_thread_runs_python() -> None:
    made = waiting()
    Tracee(made, 1, "app", 2, "pool").wait(POOL, "interruptible", TEN)
    assert of_main(made) == NO_PYTHON and others(made) == []
    native = waiting(WAIT_FOR_WORKER)
    Tracee(native, 1, "app", 2, "pool").wait(POOL, "interruptible", TEN)
    assert of_main(native) == "", "any thread may end a wait of the program"
    assert others(native) == [(1, 2)]


def test_another_thread_runs_python() -> None:
    made = waiting()
    Tracee(made, 1, "app", 2, "loader").wait(NAP, "interruptible", TEN, 100)
    assert of_main(made) == "" and others(made) == [(1, 2)]


def test_waits_that_ended() -> None:
    made = waiting(count=100)
    Tracee(made, 1, "app", 2, "pool").wait(POOL, "interruptible", TEN)
    assert of_main(made) == "", "somebody has ended them"


def test_threads_that_come_and_go() -> None:
    made = waiting()
    ended = Tracee(made, 1, "app", 2, "loader").wait(POOL, "interruptible", SECOND)
    ended.times.exited = True
    assert of_main(made) == ""


def test_a_thread_of_which_little_is_known() -> None:
    made = waiting()
    Tracee(made, 1, "app", 2, "burns").run(TEN)
    assert of_main(made) == "" and others(made) == [(1, 2)], "it may run Python all the time"


def test_locks_of_python() -> None:
    assert waits_in_python(GET)
    assert not waits_in_python(WAIT_FOR_WORKER)
    in_library = (*script("main"), *user(Module("/opt/lib/libwork.so"), "work"), *WAIT_FOR_WORKER[3:])
    assert not waits_in_python(in_library), "a thread of the library may end it"
    queue = (
        *script("main"),
        *user(Module("/usr/lib/python3.11/lib-dynload/_queue.cpython-311-x86_64.so"), "x"),
        *FUTEX,
    )
    assert waits_in_python(queue)
    assert not waits_in_python((*user(EXE, "PyThread_acquire_lock_timed"), *FUTEX)), "no script has called it"
