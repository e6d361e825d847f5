from __future__ import annotations

from dataclasses import replace

import pytest
from stallscope.converters.facts.wait_sums import Thread
from stallscope.converters.model import Module, Profile, Stack
from stallscope.converters.model.wait_objects import LABEL, PIPE, WRITES, ObjectEnd, WaitObject
from stallscope.converters.rules import finding
from stallscope.converters.rules.causes import cause_of, without
from stallscope.converters.rules.finding import Finding
from stallscope.converters.rules.for_others import effects
from summary_profiles import (
    CHILD,
    EXE,
    LIBC,
    MS,
    POLL,
    POOL,
    READ,
    SECOND,
    SLEEP,
    Tracee,
    empty,
    facts_of,
    kernel,
    user,
    waiting,
)


def cause(profile: Profile) -> Finding | None:
    facts = facts_of(profile)
    return cause_of(facts, effects(facts)[0])


def test_another_thread_is_of_the_same_process() -> None:
    profile = waiting(POOL, (1, 2, "loader", SLEEP, 9_500), (5, 5, "busy", SLEEP, 0))
    told = cause(profile)
    assert told
    assert (told.kind, told.threads) == ("sleep", ((1, 2),))


def test_a_peer_is_another_process() -> None:
    told = cause(waiting(READ, (1, 2, "loader", SLEEP, 9_900), (5, 5, "server", SLEEP, 6_000)))
    assert told
    assert (told.kind, told.threads) == ("sleep", ((5, 5),))


def test_who_has_the_other_end_is_asked_alone() -> None:
    """Another process does more meanwhile, and has nothing to do with it."""
    profile = waiting(READ, (5, 5, "server", SLEEP, 6_000), (6, 6, "other", SLEEP, 9_000))
    told = cause(profile)
    assert told and told.threads == ((6, 6),)
    profile.objects = [WaitObject(3, PIPE, does=WRITES, ends=[ObjectEnd("server", 5)])]
    profile.samples = [
        sample._replace(labels=tuple(sorted((*sample.labels, (LABEL, 3))))) if sample.label("pid") == 1 else sample
        for sample in profile.samples
    ]
    told = cause(profile)
    assert told and told.threads == ((5, 5),)
    profile.objects[0].ends[0].pid = 99  # it is not traced
    assert cause(profile).threads == ((6, 6),)  # type: ignore[union-attr]


def test_who_computes_may_be_the_cause() -> None:
    told = cause(waiting(CHILD, (5, 5, "tool", SLEEP, 1_000)))
    assert told
    assert (told.kind, told.time, told.runnable) == ("cpu", 9 * SECOND, 0)


def test_a_thread_that_waits_for_outside_may_be_the_cause_inside() -> None:
    told = cause(waiting(POOL, (1, 2, "client", READ, 9_000)))
    assert told
    assert told.kind == "peer"


def test_nobody_is_the_cause_who_waits_for_others_or_does_little() -> None:
    assert cause(waiting(READ, (5, 5, "server", POOL, 9_900))) is None
    assert cause(waiting(POLL, (1, 2, "worker", SLEEP, 5_000))) is None
    assert cause(waiting(READ)) is None


def test_a_polling_thread_waits_for_who_computes() -> None:
    told = cause(waiting(SLEEP, (1, 2, "compute", SLEEP, 0)))
    assert told
    assert (told.kind, told.threads) == ("cpu", ((1, 2),))
    assert cause(waiting(SLEEP, (1, 2, "sleeper", READ, 9_900))) is None


def test_the_straggler_among_processes_alike() -> None:
    profile = empty()
    for pid, sleeps in ((1, 0), (2, 0), (3, 6)):
        tracee = Tracee(profile, pid, "rank", pid, "rank").run(100 * MS)
        tracee.wait(POOL, "interruptible", (10 - sleeps) * SECOND - 100 * MS, 200)
        Tracee(profile, pid, "rank", pid + 10, "io").run(SECOND).wait(READ, "interruptible", 9 * SECOND, 200)
        if sleeps:
            tracee.wait(SLEEP, "interruptible", sleeps * SECOND, 200)
    facts = facts_of(profile)
    effect = effects(facts)[0]
    told = cause_of(facts, effect)
    assert told
    assert (told.kind, told.threads) == ("sleep", ((3, 3),))
    assert without(facts, effect, told).pids == {1, 2}
    assert without(facts, effect, effect) is effect


LIBPQ = Module("/usr/lib/x86_64-linux-gnu/libpq.so.5")
JOIN = (*user(EXE, "main"), *user(LIBC, "pthread_join"), *kernel("futex_wait"))
BARRIER = (*user(EXE, "worker", "sync"), *user(LIBC, "pthread_barrier_wait"), *kernel("futex_wait"))


def at_a_barrier(last_waits: int) -> Profile:
    """Eight shards; one sleeps for longer, and waits at the barrier for so many ms of 10 s, while others wake."""
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").wait(JOIN, "interruptible", 10 * SECOND, 1)
    for shard in range(8):
        waits = last_waits if shard == 5 else 8_500
        sleeps = 8_500 if shard == 5 else 1_000
        tracee = Tracee(profile, 1, "app", 10 + shard, f"shard{shard}").run((10_000 - waits - sleeps) * MS)
        tracee.wait(BARRIER, "interruptible", waits * MS, 100).wait(SLEEP, "interruptible", sleeps * MS, 100)
    return profile


def test_who_comes_last_to_a_barrier_waits_there_too() -> None:
    for last_waits in (10, 900):
        profile = at_a_barrier(last_waits)
        facts = facts_of(profile)
        effect = effects(facts)[0]
        told = cause_of(facts, effect)
        assert told, last_waits
        assert (told.kind, told.threads) == ("sleep", ((1, 15),))
        assert (1, 15) not in without(facts, effect, told).threads


def test_who_waits_for_others_all_the_time_has_ended_no_wait() -> None:
    """Threads that watch processes, beside one that works: the main thread's waits end."""
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").run(SECOND).wait(POOL, "interruptible", 9 * SECOND, 50)
    Tracee(profile, 1, "app", 2, "watcher").wait(CHILD, "interruptible", 10 * SECOND)
    Tracee(profile, 1, "app", 3, "worker").run(4 * SECOND).wait(SLEEP, "interruptible", 6 * SECOND, 9)
    facts = facts_of(profile)
    (effect,) = effects(facts)
    cause = cause_of(facts, effect)
    assert cause and cause.threads == ((1, 3),)
    never = replace(effect, count=1)
    cause = cause_of(facts, never)
    assert cause and cause.threads == ((1, 2),), "no wait has ended"


@pytest.mark.parametrize(
    ("others", "told"), [((2, 6), ((1, 2), (1, 3))), ((2, 7), ((1, 2),)), ((2, 4), ((1, 2), (1, 3)))]
)
def test_one_that_runs_for_most_of_the_time_is_told_alone(others: tuple[int, int], told: tuple[Thread, ...]) -> None:
    """Two threads sleep for so many of 10 s, and run for the rest."""
    threads = [(1, tid, "worker", POLL, 1000 * seconds) for tid, seconds in enumerate(others, 2)]
    found = cause(waiting(POOL, *threads))
    assert found and (found.kind, found.threads) == ("cpu", told)


TAKE = (*user(EXE, "serve", "take_object"), *user(LIBC, "pthread_cond_wait"), *kernel("futex_wait_queue", "futex_wait"))
CLEAN = (*user(EXE, "clean_up"), *user(LIBC, "sleep", "clock_nanosleep"), *kernel("do_nanosleep"))
LOCKED = (*user(EXE, "load"), *user(LIBC, "pthread_mutex_lock"), *kernel("futex_wait_queue", "futex_wait"))


def pool(other: str, *, still: bool, lone: bool = False, beside: Stack = CLEAN) -> Finding | None:
    """Cause of the wait of a pool of threads, or of a ``lone`` one, beside a thread that only sleeps, and one with this
    name that sleeps for a part of its time."""
    profile = empty()
    Tracee(profile, 1, "srv", 1, "srv").wait(POLL, "interruptible", 10 * SECOND)
    for tid in range(2, 3 if lone else 6):
        Tracee(profile, 1, "srv", tid, "worker").run(SECOND).wait(TAKE, "interruptible", 9 * SECOND, 200)
    cleaner = Tracee(profile, 1, "srv", 8, "cleaner").run(0 if still else MS)
    cleaner.wait(beside, "interruptible", 10 * SECOND - MS, 1 if still else 10, still=still)
    if other:
        Tracee(profile, 1, "srv", 9, other).run(3 * SECOND).wait(CLEAN, "interruptible", 7 * SECOND, 300)
    facts = facts_of(profile)
    places = {thread: [*facts.waits_of(thread)] for thread in facts.own if facts.name_of(thread) == "worker"}
    effect = finding.waiting(facts, "thread", places)
    assert effect
    return cause_of(facts, effect)


@pytest.mark.parametrize("still", [True, False])
def test_who_only_sleeps_keeps_no_pool_waiting(still: bool) -> None:
    assert pool("", still=still) is None
    told = pool("filler", still=still)
    assert told and told.threads == ((1, 9),)


@pytest.mark.parametrize(("still", "told"), [(True, False), (False, True)])
def test_who_never_moved_has_ended_no_wait_of_a_pool(still: bool, told: bool) -> None:
    assert (pool("", still=still, beside=LOCKED) is not None) is told


def test_a_single_thread_may_wait_for_one_that_only_sleeps() -> None:
    told = pool("", still=False, lone=True)
    assert told and told.threads == ((1, 8),)


ASKS = (*user(EXE, "main"), *user(Module("/usr/lib/libcurl.so.4"), "curl_easy_perform", "curl_multi_poll"))
PERFORM = (*ASKS, *user(LIBC, "poll"), *kernel("__x64_sys_poll", "do_sys_poll"))
LOOK_UP = (*user(LIBC, "start_thread"), *user(Module("/usr/lib/libcurl.so.4"), "thread_main"))
RESOLVE = (*LOOK_UP, *user(LIBC, "getaddrinfo", "poll"), *kernel("__x64_sys_poll", "do_sys_poll"))


@pytest.mark.parametrize(
    ("where", "ms", "told"), [(RESOLVE, 9_900, True), (RESOLVE, 4_000, False), (READ, 9_900, False)]
)
def test_who_looks_up_the_address_of_the_peer(where: Stack, ms: int, told: bool) -> None:
    found = cause(waiting(PERFORM, (1, 2, "app", where, ms)))
    assert (found is not None and found.threads == ((1, 2),)) is told


def test_what_all_children_do_counts() -> None:
    """Many compilers run all of their short lives; another child takes more time in all."""
    profile = waiting(CHILD)
    for pid in range(20, 30):
        Tracee(profile, pid, "cc1", pid, "cc1").run(SECOND // 10)
    for pid in range(40, 50):
        Tracee(profile, pid, "fetch", pid, "fetch").run(SECOND // 10).wait(READ, "interruptible", 7 * SECOND // 10, 9)
    told = cause(profile)
    assert told and {pid for pid, _ in told.threads} == set(range(40, 50))


def through_a_server(asks: bool, end: int, *, known: bool = True) -> Profile:
    """A client waits for a server, whose thread waits for process ``end`` meanwhile."""
    fetch = (*user(LIBPQ, "PQgetResult"), *user(LIBC, "recv"), *kernel("sk_wait_data")) if asks else READ
    profile = waiting(READ, (5, 5, "server", fetch, 9_500), (6, 6, "database", SLEEP, 0))
    profile.objects = [
        WaitObject(3, PIPE, does=WRITES, ends=[ObjectEnd("server", 5)]),
        WaitObject(4, PIPE, does=WRITES, ends=[ObjectEnd("other", end)] if known else []),
    ]
    profile.samples = [
        sample._replace(labels=tuple(sorted((*sample.labels, (LABEL, {1: 3, 5: 4}[pid])))))
        if (pid := sample.label("pid")) in (1, 5)
        else sample
        for sample in profile.samples
    ]
    return profile


def test_a_server_that_asks_another_one() -> None:
    told = cause(through_a_server(asks=True, end=6))
    assert told
    assert (told.kind, told.threads) == ("peer", ((5, 5),))


@pytest.mark.parametrize(
    "profile",
    [
        through_a_server(asks=True, end=1),  # it asks the one who waits for it
        through_a_server(asks=True, end=6, known=False),
        through_a_server(asks=False, end=6),  # it may wait for a request
    ],
)
def test_a_server_that_waits_for_its_clients_is_no_cause(profile: Profile) -> None:
    assert cause(profile) is None
