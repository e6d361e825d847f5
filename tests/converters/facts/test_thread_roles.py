from __future__ import annotations

from stallscope.converters.facts.thread_roles import ThreadRoles, roles_of
from stallscope.converters.facts.wait_sums import add_up_waits, merged_threads
from stallscope.converters.model import Frame, Profile, Sample, Stack, ThreadTimes, ValueType
from summary_profiles import EXE, LIBC, MS, POLL, POOL, SECOND, TOPK, Tracee, empty, kernel, user

SLEEP = (*user(EXE, "main", "nap"), *kernel("__x64_sys_clock_nanosleep", "do_nanosleep"))
READ = (*user(EXE, "main", "fetch"), *user(LIBC, "read"), *kernel("ksys_read", "vfs_read", "pipe_read"))


def roles(profile: Profile) -> ThreadRoles:
    threads = merged_threads(profile.threads)
    return roles_of(add_up_waits(profile, threads), threads)


def beside_work(*waiting: tuple[str, Stack, int], main_runs: int = SECOND) -> ThreadRoles:
    """Threads (name, stack, waits) that wait all the time but 1 ms if they have several waits."""
    profile = empty()
    Tracee(profile, 1, "p", 1, "p").run(main_runs).wait(TOPK, "uninterruptible", 10 * SECOND - main_runs, 100)
    for tid, (name, stack, count) in enumerate(waiting, 2):
        run = MS if count > 1 else 0
        Tracee(profile, 1, "p", tid, name).run(run).wait(stack, "interruptible", 10 * SECOND - run, count)
    return roles(profile)


def test_several_alike_wait_for_work() -> None:
    assert beside_work(("pool-1", POOL, 1), ("pool-2", POOL, 1)).idle == {(1, 2), (1, 3)}


def test_one_that_is_woken_now_and_then_waits_for_work() -> None:
    assert beside_work(("feeder", POOL, 90)).idle == {(1, 2)}


def test_one_that_never_moved_is_not_known_to() -> None:
    found = beside_work(("helper", POOL, 1))
    assert found.idle == frozenset()
    assert found.still == {(1, 2)}


def test_a_process_that_does_not_get_on_has_no_idle_threads() -> None:
    profile = empty()
    Tracee(profile, 1, "p", 1, "p").run(MS).wait(POOL, "interruptible", 9_999 * MS, 50)
    for tid in (2, 3):
        Tracee(profile, 1, "p", tid, f"pool-{tid}").wait(POOL, "interruptible", 10 * SECOND)
    assert roles(profile).idle == frozenset()


def test_who_sleeps_or_reads_may_be_what_others_wait_for() -> None:
    assert beside_work(("loader-1", SLEEP, 90), ("loader-2", SLEEP, 90)).idle == frozenset()
    assert beside_work(("loader-1", READ, 90), ("loader-2", READ, 90)).idle == frozenset()


def test_readers_that_never_moved_are_parked() -> None:
    assert beside_work(("reader-1", READ, 1), ("reader-2", READ, 1)).idle == {(1, 2), (1, 3)}


def test_a_main_thread_is_never_idle() -> None:
    profile = empty()
    for pid in (1, 2):
        Tracee(profile, pid, "p", pid, "p").wait(POOL, "interruptible", 10 * SECOND)
        Tracee(profile, pid, "p", pid + 10, "w").run(9 * SECOND).wait(TOPK, "uninterruptible", SECOND)
    found = roles(profile)
    assert found.idle == frozenset()
    assert set(found.quiet) == {(1, 1), (2, 2)}


def test_quiet_from_99_percent_on() -> None:
    for run, quiet in ((100 * MS, True), (101 * MS, False)):
        profile = empty()
        Tracee(profile, 1, "p", 1, "p").run(run).wait(POOL, "interruptible", 10 * SECOND - run)
        assert bool(roles(profile).quiet) is quiet


def test_who_is_held_up_is_not_quiet() -> None:
    profile = empty()
    Tracee(profile, 1, "p", 1, "p").wait(TOPK, "uninterruptible", 10 * SECOND)
    assert not roles(profile).quiet


def test_threads_of_the_kernel() -> None:
    profile = empty()
    stack = kernel("ret_from_fork", "kthread", "worker_thread")
    Tracee(profile, 9, "kworker", 9, "kworker").wait(stack, "idle", 10 * SECOND)
    assert roles(profile).kernel == frozenset()
    Tracee(profile, 1, "p", 1, "p").wait(POOL, "interruptible", 10 * SECOND)
    found = roles(profile)
    assert found.kernel == found.idle == {(9, 9)}
    assert found.still == {(1, 1)}


def test_a_thread_that_has_not_run_yet_is_not_the_kernels() -> None:
    profile = empty()
    not_started = (Frame("[not started yet]"),)
    Tracee(profile, 1, "p", 1, "p").run(SECOND).wait(POOL, "interruptible", 9 * SECOND, 9)
    Tracee(profile, 1, "p", 2, "new").run(MS).wait(not_started, "runnable-woken", SECOND)
    Tracee(profile, 3, "child", 3, "child").run(MS).wait(not_started, "runnable-woken", SECOND)
    assert roles(profile).kernel == frozenset()


ACCEPT = (*user(EXE, "accept_clients"), *user(LIBC, "accept"), *kernel("__x64_sys_accept", "inet_csk_accept"))
ACCEPT_LOCAL = (*user(EXE, "accept_local"), *user(LIBC, "accept4"), *kernel("__x64_sys_accept4", "skb_wait_for_more"))


def beside_a_disk(*waiting: tuple[str, Stack, int]) -> ThreadRoles:
    """Threads (name, stack, ms that they run) of a process whose main thread works and waits for the disk."""
    profile = empty()
    fsync = (*user(EXE, "main", "save"), *user(LIBC, "fsync"), *kernel("__x64_sys_fsync", "folio_wait_bit"))
    Tracee(profile, 1, "p", 1, "p").run(SECOND).wait(fsync, "uninterruptible", 9 * SECOND, 100)
    for tid, (name, stack, runs) in enumerate(waiting, 2):
        tracee = Tracee(profile, 1, "p", tid, name).run(runs * MS)
        tracee.wait(stack, "interruptible", 10 * SECOND - runs * MS, 9 if runs else 1)
    return roles(profile)


def test_a_thread_that_waits_for_connections_or_work_that_never_come_is_idle() -> None:
    assert beside_a_disk(("acceptor", ACCEPT, 0)).idle == {(1, 2)}
    assert beside_a_disk(("acceptor", ACCEPT_LOCAL, 0)).idle == {(1, 2)}
    assert beside_a_disk(("helper", POOL, 0)).idle == {(1, 2)}
    assert beside_a_disk(("reader", READ, 0), ("sleeper", SLEEP, 0)).idle == frozenset()


def test_nobody_is_idle_whom_the_main_thread_may_wait_for() -> None:
    profile = empty()
    join = (*user(EXE, "main"), *user(LIBC, "pthread_join"), *kernel("__x64_sys_futex", "futex_wait"))
    Tracee(profile, 1, "p", 1, "p").run(SECOND).wait(join, "interruptible", 9 * SECOND, 9)
    Tracee(profile, 1, "p", 2, "acceptor").wait(ACCEPT, "interruptible", 10 * SECOND)
    assert roles(profile).idle == frozenset()


def test_threads_in_one_place_are_a_pool_whatever_their_names_are() -> None:
    assert beside_work(("bio_close", POOL, 1), ("bio_fsync", POOL, 1)).idle == {(1, 2), (1, 3)}


def test_one_of_a_pool_that_had_little_to_do_is_idle_too() -> None:
    pool = ("pool-1", POOL, 0), ("pool-2", POOL, 0)
    assert (1, 4) in beside_a_disk(*pool, ("pool-3", POOL, 400)).idle
    assert (1, 4) not in beside_a_disk(*pool, ("pool-3", POOL, 600)).idle
    assert beside_a_disk(("pool-1", POOL, 400), ("pool-2", POOL, 400)).idle == frozenset()


def test_who_is_woken_and_waits_for_a_core_is_quiet_all_the_same() -> None:
    profile = empty()
    Tracee(profile, 1, "p", 1, "p").run(10 * SECOND)
    feeder = Tracee(profile, 1, "p", 2, "feeder").run(10 * MS).wait(POOL, "interruptible", 6_990 * MS, 9)
    feeder.wait(POOL, "runnable-woken", 3 * SECOND, 9)
    assert roles(profile).idle == {(1, 2)}


SAMPLED = ("wall", "count", "min", "max", "samples")
STOPPED = (Frame("[stopped by eu-stack]", "other"),)
COND = (*user(LIBC, "start_thread"), *user(EXE, "worker_main"), *user(LIBC, "pthread_cond_wait"))
JOIN = (*user(EXE, "main"), *user(LIBC, "pthread_join"))
RECV = (*user(EXE, "main", "fetch"), *user(LIBC, "recv"))
MUTEX = (*user(LIBC, "start_thread"), *user(EXE, "take"), *user(LIBC, "pthread_mutex_lock", "__lll_lock_wait"))


def sampled(main: Stack, *others: Stack, main_runs: int = SECOND) -> Profile:
    """Profile of an engine that does not count waits, and holds each thread for a while: 10 s of a main thread and
    others."""
    profile = Profile([ValueType(name, "nanoseconds") for name in SAMPLED], duration_ns=10 * SECOND)
    for tid, (stack, runs) in enumerate([(main, main_runs), *((stack, 5 * MS) for stack in others)], 1):
        waits = 9_500 * MS - runs
        for where, state, time in ((stack, "interruptible", waits), (STOPPED, "traced", 400 * MS)):
            labels = ("pid", 1), ("process", "p"), ("state", state), ("thread", "t"), ("tid", tid)
            profile.samples.append(Sample(where, (time, 0, 0, 0, 50 if where is stack else 0), labels))
        blocked = {"interruptible": waits, "traced": 400 * MS}
        profile.threads.append(ThreadTimes(1, "p", tid, "t", 10 * SECOND, runs, 100 * MS, blocked))
    return profile


def test_of_sampled_waits_the_stops_do_not_count() -> None:
    assert roles(sampled(RECV, COND, COND)).idle == {(1, 2), (1, 3)}


def test_one_that_waits_in_one_place_is_idle_only_if_the_main_thread_does_not_wait_for_it() -> None:
    assert roles(sampled(RECV, COND)).idle == {(1, 2)}
    assert roles(sampled(JOIN, COND)).idle == frozenset()


def test_who_waits_for_a_lock_is_never_idle() -> None:
    assert roles(sampled(RECV, MUTEX, MUTEX)).idle == frozenset()


def test_a_quiet_main_thread_that_waits_for_no_thread_shows_progress() -> None:
    assert roles(sampled(RECV, COND, COND, main_runs=20 * MS)).idle == {(1, 2), (1, 3)}
    assert roles(sampled(JOIN, COND, COND, main_runs=20 * MS)).idle == frozenset()


def test_who_waits_for_an_answer_is_never_idle_or_quiet() -> None:
    """Threads of a pool that look up names, beside one that works."""
    poll = kernel("__x64_sys_poll", "do_sys_poll")
    asks = (*user(EXE, "main", "look_up"), *user(LIBC, "getaddrinfo", "poll"), *poll)
    stays = roles(with_pool(asks))
    assert not stays.idle and (1, 2) not in stays.quiet
    others = roles(with_pool((*user(EXE, "main", "look_up"), *user(LIBC, "poll"), *poll)))
    assert {(1, 2), (1, 3)} <= others.idle


def with_pool(stack: Stack) -> Profile:
    profile = empty()
    Tracee(profile, 1, "p", 1, "p").run(5 * SECOND).wait(POLL, "interruptible", 5 * SECOND, 90)
    for tid in (2, 3):
        Tracee(profile, 1, "p", tid, "pool").run(MS).wait(stack, "interruptible", 10 * SECOND, 12)
    return profile
