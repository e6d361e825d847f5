"""Profiles in which each rule finds something: minimal, their numbers are known. Times in ns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from collective_profiles import late_messages, one_late
from collective_profiles import profile_of as of_collectives
from job_profiles import late, stuck
from processes import crowd, pools
from processes import process as add_process
from processes import threads as add_threads
from stallscope.converters.model import Frame, Module, Profile, Sample, Stack, ThreadTimes, ValueType
from stallscope.converters.model.gil import GilThread, GilTimes
from stallscope.converters.model.locks import MUTEX, OWNER, PROCESS, LockThread, LockTimes
from stallscope.converters.model.processes import CpuLimit
from stallscope.converters.model.steps import SlowSteps, Spent, Steps
from summary_profiles import (
    CHILD,
    EPOLL,
    EXE,
    FUTEX,
    LIBC,
    MS,
    POLL,
    POOL,
    READ,
    SECOND,
    SLEEP,
    Tracee,
    empty,
    kernel,
    user,
    waiting,
)
from wait_graphs import chained, profile_of, with_extremes

FSYNC = (*user(EXE, "main", "save"), *user(LIBC, "fsync"), *kernel("__x64_sys_fsync", "folio_wait_bit"))
LOCK = (*user(EXE, "work", "take"), *user(LIBC, "pthread_mutex_lock", "__lll_lock_wait"), *FUTEX)
GIL = (*user(EXE, "main"), Frame("take_gil", module=Module("/usr/bin/python3")), *FUTEX)
YIELD = (*user(EXE, "main", "wait_for_flag"), *user(LIBC, "sched_yield"), *kernel("__x64_sys_sched_yield"))
COMPUTE = (*user(EXE, "main", "compute"), *kernel("asm_sysvec_apic_timer_interrupt"))
JOIN = (*user(EXE, "main", "finish"), *user(LIBC, "pthread_join"), *FUTEX)
EPOLL_LOOP = (*user(EXE, "main", "serve"), *user(LIBC, "epoll_wait"), *EPOLL)
IDLE_KERNEL = (Frame("ret_from_fork", "kernel"), Frame("kthread", "kernel"), Frame("worker_thread", "kernel"))
"""Stack of a thread of the kernel, which makes the profile one of a whole host."""


def one(stack: Stack, time: int, *, runs: int = 0, state: str = "interruptible", count: int = 500) -> Profile:
    """The main thread of app (pid 1) waits in one place, and runs."""
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").run(runs).wait(stack, state, time, count)
    return profile


def blocked(time: int, runs: int = 0) -> Profile:
    """Profile of a thread that is blocked in fsync."""
    return one(FSYNC, time, runs=runs, state="uninterruptible")


def whole_host(profile: Profile) -> Profile:
    """Adds a thread of the kernel."""
    Tracee(profile, 2, "kworker", 2, "kworker").wait(IDLE_KERNEL, "idle", 10 * SECOND)
    return profile


def with_quota(profile: Profile, stopped: int, pid: int = 99) -> Profile:
    """Adds a process that a quota stopped for so long; ``pid`` may be one of those that are there. It does
    nothing else, so that its verdict is a rival whose score is known."""
    if all(times.pid != pid for times in profile.threads):
        add_threads(profile, pid, "stopped", "stopped", wall=0)
    name = next(times.process for times in profile.threads if times.pid == pid)
    add_process(profile, pid, name, limits=(CpuLimit("/stopped", 50_000, 100_000, 100, 98, stopped),))
    return profile


def deadlocked(
    pid: int = 1, stacks: tuple[Stack, ...] = (LOCK, LOCK), moves: int = 0, to: Profile | None = None
) -> Profile:
    """A process whose threads all wait for locks, and never move; but the last one may."""
    profile = to or empty()
    for tid, stack in enumerate(stacks, pid):
        Tracee(profile, pid, "app", tid, "app").wait(stack, "interruptible", 10 * SECOND)
    profile.threads[-1].on_cpu = moves
    return profile


def held_by_gil(main: int = 6 * SECOND, to: Profile | None = None) -> Profile:
    """The main thread of train.py (pid 7) waits for Python's interpreter lock for so long of 10 s."""
    profile = to or empty()
    add_threads(profile, 7, "train.py", "python3", 2)
    having = [GilThread("loader", 8, main, 4, ("main", "hog"))]
    profile.gil.append(GilTimes("train.py", 7, main, 9, waiters=[GilThread("python3", 7, main, 9)], holders=having))
    return profile


def herd(threads: int = 8, often: float = 1000, runs: float = 10_000, last: float = 1) -> Profile:
    """Workers that are woken so many times a second; each time they run for so many ns. ``last``: how often the last
    one is woken, in terms of the others."""
    profile = empty()
    for tid in range(2, threads + 2):
        wakeups = round(often * 10 * (last if tid == threads + 1 else 1))
        run = round(runs * wakeups)
        Tracee(profile, 1, "app", tid, "w").run(run).wait(POOL, "interruptible", 10 * SECOND - run, wakeups)
    return profile


def yielding(asks: int, works: int) -> Profile:
    """A thread runs all the time, and loses its core so many times while it yields it, or computes."""
    profile = empty()
    thread = Tracee(profile, 1, "app", 1, "app").run(9 * SECOND)
    for stack, times in ((YIELD, asks), (COMPUTE, works)):
        if times:
            thread.wait(stack, "runnable-preempted", times * MS, times)
    return profile


def workers(stack: Stack = READ, *, waits: int = 8 * SECOND, runs: int = 2 * SECOND) -> Profile:
    """Two workers wait, while a main thread only waits for events."""
    profile = waiting(POLL)
    for tid in (2, 3):
        Tracee(profile, 1, "app", tid, "w").run(runs).wait(stack, "interruptible", waits, 500)
    return profile


def with_stuck(profile: Profile, runs: int = 0) -> Profile:
    """Adds a process (pid 9) that does not move."""
    Tracee(profile, 9, "stuck", 9, "stuck").run(runs).wait(POOL, "interruptible", 10 * SECOND - runs)
    return profile


def unknown() -> Profile:
    """A thread of which it is not known where it was for half of the time."""
    profile = empty()
    tracee = Tracee(profile, 1, "app", 1, "app").run(SECOND).wait(SLEEP, "interruptible", 4 * SECOND, 9)
    tracee.wait((Frame("[lost]", "other"),), "other", 5 * SECOND, 9)
    return profile


def all_waiting(last: Stack = POOL, moves: int = 0) -> Profile:
    """Two threads wait for each other for the whole trace; the last one elsewhere, or it may move."""
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").wait(JOIN, "interruptible", 10 * SECOND)
    Tracee(profile, 1, "app", 2, "w").run(moves).wait(last, "interruptible", 10 * SECOND - moves)
    return profile


def serving(loop: Stack = EPOLL_LOOP, runs: int = 10 * MS) -> Profile:
    """A server whose event loop hardly runs."""
    profile = empty()
    Tracee(profile, 1, "srv", 1, "srv").run(runs).wait(loop, "interruptible", 10 * SECOND - runs, 90)
    Tracee(profile, 1, "srv", 2, "log").wait(POOL, "interruptible", 10 * SECOND)
    return profile


def calm_host(runs: int = 50 * MS, held: int = 0) -> Profile:
    """A host on which a shell waits for a program that sleeps; a daemon runs for so long, another one waits for so long
    for a disk. 10 s, with a thread of the kernel."""
    profile = empty()
    Tracee(profile, 1, "sh", 1, "sh").run(MS).wait(CHILD, "interruptible", 10 * SECOND - MS, 60)
    Tracee(profile, 3, "sleep", 3, "sleep").wait(SLEEP, "interruptible", 10 * SECOND, 1)
    Tracee(profile, 4, "cron", 4, "cron").run(runs).wait(SLEEP, "interruptible", 10 * SECOND - runs, 90)
    if held:
        Tracee(profile, 5, "saver", 5, "saver").run(MS).wait(FSYNC, "uninterruptible", held, 90)
    Tracee(profile, 2, "kworker", 2, "kworker").wait(IDLE_KERNEL, "idle", 10 * SECOND)
    return profile


def ending_with_others(waits: int = 9 * SECOND, others: int = 0) -> Profile:
    """A thread waits for one that is not traced, and otherwise for another one."""
    profile = with_extremes(profile_of(chained(1, 1, waits, ("exporter-8", 8, "exporter"), own=READ, process="app")))
    if others:
        profile.samples += with_extremes(
            profile_of(chained(1, 1, others, ("[softirq NET_RX]", 0, ""), own=READ))
        ).samples
    profile.duration_ns = 10 * SECOND
    blocked = {"interruptible": waits + others}
    profile.threads.append(ThreadTimes(1, "app", 1, "app", 10 * SECOND, 10 * SECOND - waits - others, 0, blocked))
    return profile


def locked(time: int = 3 * SECOND, held: int = 3 * SECOND, wall: int = 10 * SECOND) -> Profile:
    """Thread 2 of app waits for a lock for so long, while thread 3 has it for so long."""
    profile = ending_with_others()
    profile.threads.append(ThreadTimes(1, "app", 2, "w", wall, wall - time, 0, {"interruptible": time}))
    waiters = [LockThread("app", "w", 1, 2, time, 9)]
    holders = [LockThread("app", "saver", 1, 3, held, 9, OWNER)]
    profile.locks.append(LockTimes("table", MUTEX, PROCESS, "app", 1, time, 9, time, 1, 0, 0, waiters, 0, holders, []))
    return profile


def stepping(every: int | None = 20) -> Profile:
    """Five of a hundred steps take much longer than the others."""
    slow = SlowSteps(Spent(5, 50 * MS, 5 * MS, 45 * MS), Spent(95, 95 * MS // 2, 40 * MS, 5 * MS), 3, every)
    whole = Spent(100, 195 * MS // 2, 45 * MS, 50 * MS)
    profile = waiting(READ)
    profile.steps.append(Steps("demo:train_step", "app", 1, "app", 1, whole, Spent(0, 0, 0, 0), MS, 11 * MS, 0, ()))
    profile.steps[0] = replace(profile.steps[0], slow=slow)
    return profile


def handing_on(runs: int = 50_000, woken: float = 1.0, kind: Stack = READ, number: int = 4) -> Profile:
    """Some processes that share a core, and wait for each other after they have run for so long; this part of their
    waiting for a core comes right after these waits."""
    profile = empty()
    for pid in range(10, 10 + number):
        add_process(profile, pid, "app", cpus="0")
        waits = 2 * SECOND // runs
        thread = Tracee(profile, pid, "app", pid, "app").run(2 * SECOND).wait(kind, "interruptible", 3 * SECOND, waits)
        thread.wait(kind, "runnable-woken", round(5 * SECOND * woken), waits)
        thread.wait(COMPUTE, "runnable-preempted", round(5 * SECOND * (1 - woken)), 500)
    return profile


def taking_turns(
    threads: int = 4, used: float = 1.0, waits: float = 0.75, other: float = 0.0, first: float | None = None
) -> Profile:
    """Threads that together use so many cores for 10 s; each of them waits for the others, and otherwise sleeps, for
    these shares of its time. ``first``: the cores that one of them uses."""
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").wait(POLL, "interruptible", 10 * SECOND)
    rest = (used - (first or 0)) / (threads - (first is not None))
    for number in range(threads):
        runs = round(10 * SECOND * (first if first is not None and not number else rest))
        thread = Tracee(profile, 1, "app", 2 + number, "worker").run(runs)
        thread.wait(POOL, "interruptible", round(10 * SECOND * waits), 90)
        thread.wait(SLEEP, "interruptible", round(10 * SECOND * other), 900)
    return profile


def starting(processes: int = 200, busy: int = 3 * MS, life: int = 5 * MS, trace: int = SECOND) -> Profile:
    """A script that starts processes, which run a part of their short lives, through one that ends as soon."""
    profile = empty()
    profile.duration_ns = trace
    Tracee(profile, 1, "import.sh", 1, "import.sh").run(MS).wait(READ, "interruptible", trace - MS, processes)
    for number in range(processes):
        pid = 100 + number
        Tracee(profile, pid, ("cut", "tr")[number % 2], pid, "cut").run(busy).wait(
            READ, "interruptible", life - busy, 1
        )
        profile.threads[-1].exited, profile.threads[-1].creator = True, 1 if number % 2 else 100 + max(number - 1, 0)
    profile.threads[1].creator = 1
    return profile


SWAP_IN = (*user(EXE, "main", "look_up"), *kernel("asm_exc_page_fault", "handle_mm_fault", "do_swap_page"))
FREE_SOME = (*SWAP_IN, *kernel("charge_memcg", "try_to_free_mem_cgroup_pages", "shrink_node"))


def sampled(*stacks: Stack, samples: tuple[int, ...] = ()) -> Profile:
    """The main thread of train (pid 7) runs for 10 s; so many samples were taken in each stack, 100 by default."""
    columns = [ValueType("wall", "nanoseconds"), ValueType("count", "count"), ValueType("min", "nanoseconds", "min")]
    columns += [ValueType("max", "nanoseconds", "max"), ValueType("samples", "count")]
    profile = Profile(columns, duration_ns=10 * SECOND)
    labels = ("pid", 7), ("process", "train"), ("state", "running"), ("thread", "train"), ("tid", 7)
    numbers = samples or (100,) * len(stacks)
    for stack, number in zip(stacks, numbers, strict=True):
        weight = 10 * SECOND * number // max(sum(numbers), 1)
        profile.samples.append(Sample(stack, (weight, 0, 0, 0, number), labels))
    profile.threads = [ThreadTimes(7, "train", 7, "train", 10 * SECOND, 10 * SECOND, 0, {})]
    return profile


MINIMAL: dict[str, Callable[[], Profile]] = {
    "slow-step": stepping,
    "late-rank": lambda: of_collectives(one_late()),
    "late-messages": lambda: of_collectives(late_messages()),
    "stuck-ranks": stuck,
    "deadlock": deadlocked,
    "ends-with": ending_with_others,
    "holder": locked,
    "all-wait": all_waiting,
    "calm": calm_host,
    "idle": serving,
    "unclear": unknown,
    "gil-main": held_by_gil,
    "quota": lambda: with_quota(empty(), SECOND),
    "crowd": crowd,
    "pool-anew": pools,
    "processes-anew": starting,
    "reclaim": lambda: sampled(SWAP_IN, FREE_SOME, COMPUTE),
    "herd": herd,
    "polling": lambda: yielding(80, 20),
    "held-up": lambda: blocked(6 * SECOND, 4 * SECOND),
    "turns": taking_turns,
    "for-others": lambda: waiting(READ),
    "workers": workers,
    "busy": lambda: one(SLEEP, SECOND, runs=9 * SECOND),
    "straggler": lambda: late(0.5),
    "still": lambda: with_stuck(waiting(READ)),
}
"""Makers of profiles by the rule that is to be first, or, for `still`, among what did not move."""
