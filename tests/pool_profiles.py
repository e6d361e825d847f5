"""Profiles with pools of threads: where they were created, and who gives them work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stallscope.converters.model import Frame, Profile, Sample, Stack, ThreadTimes, ValueType
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.model.wakers import SEPARATOR, WAKER
from summary_profiles import EXE, FUTEX, LIBC, SECOND, VALUE_TYPES, user

PID = 700
START = user(LIBC, "clone3", "start_thread")
WAKES = ("try_to_wake_up", "wake_up_q", "futex_wake", "__x64_sys_futex")
READERS, WRITERS = ("start_readers", "start_pool"), ("start_writers", "start_pool")


def no_pools(cpus: str = "0-1") -> Profile:
    """A process whose main thread sleeps for 10 s."""
    made = Profile([ValueType("blocked", "nanoseconds"), *VALUE_TYPES[1:]], duration_ns=10 * SECOND, host="node7")
    made.threads.append(ThreadTimes(PID, "app", PID, "app", 10 * SECOND, 0, 0, {"interruptible": 10 * SECOND}))
    made.processes.append(ProcessTimes(PID, "app", cpus=cpus))
    return made


def add_pool(
    to: Profile,
    number: int,
    *,
    name: str = "worker-{}",
    runs: str = "run_tasks",
    made_in: Sequence[str] = (),
    creator: int = PID,
    fed: Mapping[str, float] | None = None,
    wants: float = 0.0,
    call: str = "sem_wait",
    pid: int = PID,
    count: int = 1,
    waits: int = 10,
    waker: int = PID,
    wakes_in: Sequence[str] = WAKES,
) -> None:
    """Adds threads that live for 10 s. ``fed``: seconds that each waits until a function of the program gives it work.
    ``wants``: seconds that it waits for a core; it has one for a tenth as long. ``runs``: "" for stacks that end before
    the thread's start. ``creator``: 0 for threads from before the trace. ``waits``: how often each function gives it
    work, in the thread ``waker``. ``wakes_in``: functions of the kernel with which it does, innermost first."""
    for i in range(number):
        tid = PID + 1 + len(to.threads)
        given = dict(fed or {})
        blocked = {"interruptible": round(sum(given.values()) * SECOND)}
        busy = round(wants * SECOND)
        times = (10 * SECOND, busy // 10, busy, blocked, 9)
        to.threads.append(
            ThreadTimes(pid, "app", tid, name.format(i), *times, creator=creator, made_in=tuple(made_in), count=count)
        )
        own: Stack = (*(START if runs else ()), *user(EXE, runs or "burn"), *user(LIBC, call), *FUTEX)
        for feeder, seconds in given.items():
            wakes = (*(Frame(each, WAKER) for each in wakes_in), Frame(feeder, WAKER, EXE), Frame("main", WAKER, EXE))
            stack = (*own, SEPARATOR, *wakes, Frame(f"app-{PID}", WAKER))
            labels = {"pid": pid, "process": "app", "tid": tid, "thread": name.format(i), "state": "interruptible"}
            labels |= {"waker": f"app-{PID}", "waker_tid": waker}
            time = round(seconds * SECOND)
            to.samples.append(Sample(stack, (time, waits, 1, -(-time // waits)), tuple(sorted(labels.items()))))


def two_pools(cpus: str = "0-1") -> Profile:
    """Three readers and two writers, which want cores more than there are."""
    made = no_pools(cpus)
    add_pool(made, 3, made_in=READERS, fed={"feed_readers": 1}, wants=8)
    add_pool(made, 2, made_in=WRITERS, fed={"feed_writers": 1}, wants=8)
    return made
