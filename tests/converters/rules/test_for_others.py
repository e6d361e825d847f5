from __future__ import annotations

import pytest
from stallscope.converters.facts import thresholds
from stallscope.converters.model import Module, Profile, Stack
from stallscope.converters.rules.for_others import effects, find, waits_beside_work
from stallscope.converters.rules.ranking import judge
from summary_profiles import (
    CHILD,
    EXE,
    FUTEX,
    LIBC,
    MS,
    MUTEX,
    POLL,
    READ,
    SECOND,
    SLEEP,
    Tracee,
    empty,
    facts_of,
    kernel,
    model_case,
    user,
    waiting,
)
from verdict_profiles import FSYNC, one, whole_host


def test_main_threads_that_wait() -> None:
    (effect,) = effects(facts_of(model_case()))
    assert effect.kind == "thread"
    assert effect.pids == set(range(4711, 4719))


def test_what_others_than_the_still_ones_wait_for_comes_first() -> None:
    profile = waiting(READ)
    Tracee(profile, 9, "stuck", 9, "stuck").wait(POLL, "interruptible", 10 * SECOND)
    assert [effect.kind for effect in effects(facts_of(profile))] == ["peer"]
    profile = empty()
    Tracee(profile, 9, "stuck", 9, "stuck").wait(POLL, "interruptible", 10 * SECOND)
    assert [effect.kind for effect in effects(facts_of(profile))] == ["events"]


def test_processes_at_work_come_before_those_that_hardly_move() -> None:
    profile = waiting(READ)
    Tracee(profile, 9, "cron", 9, "cron").run(MS).wait(SLEEP, "interruptible", 9_999 * MS, 10)
    assert [effect.pids for effect in effects(facts_of(profile))] == [{1}]


def test_reads_of_several_callers_are_one_wait_but_of_the_main_thread_only() -> None:
    other = (*user(EXE, "serve", "fetch_more"), *READ[2:])
    profile = waiting(READ, (1, 2, "client", (*user(EXE, "elsewhere"), *READ[2:]), 9_000))
    profile.samples[0] = profile.samples[0]._replace(values=(5_000 * MS, 300, 1, SECOND))
    main = profile.samples[0]
    profile.samples.append(main._replace(stack=other, values=(4_900 * MS, 200, 1, SECOND)))
    (effect,) = effects(facts_of(profile))
    assert (effect.time, effect.threads) == (9_900 * MS, ((1, 1),))


def test_poll_beside_work_is_no_event_loop() -> None:
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").run(SECOND).wait(POLL, "interruptible", 9 * SECOND, 50)
    facts = facts_of(profile)
    assert waits_beside_work(effects(facts)[0], facts)
    facts = facts_of(waiting(POLL))
    assert not waits_beside_work(effects(facts)[0], facts)
    epoll = (*POLL[:2], *user(LIBC, "epoll_wait"), *kernel("__x64_sys_epoll_wait", "ep_poll"))
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").run(SECOND).wait(epoll, "interruptible", 9 * SECOND, 50)
    facts = facts_of(profile)
    assert not waits_beside_work(effects(facts)[0], facts)


def test_sleeps_of_several_callers_are_several_waits() -> None:
    profile = empty()
    main = Tracee(profile, 1, "app", 1, "app").run(SECOND)
    for function in ("pace", "retry"):
        stack = (*user(EXE, "main", function), *kernel("__x64_sys_clock_nanosleep", "do_nanosleep"))
        main.wait(stack, "interruptible", 4 * SECOND, 10)
    assert [effect.time for effect in effects(facts_of(profile))] == [4 * SECOND, 4 * SECOND]


def test_what_is_told_of_it() -> None:
    (verdict,) = find(facts_of(waiting(READ, (5, 5, "server", SLEEP, 6_000))))
    assert (verdict.rule, verdict.kind, verdict.time, verdict.confidence) == ("for-others", "peer", 9_900 * MS, 1)
    assert verdict.finding and verdict.cause
    assert (verdict.finding.threads, verdict.pids, verdict.is_effect) == (((1, 1),), {1}, True)
    assert (verdict.cause.kind, verdict.cause.threads, verdict.effect) == ("sleep", ((5, 5),), None)


def test_threads_that_are_the_cause_are_not_those_that_wait() -> None:
    profile = empty()
    for pid, sleeps in ((1, 0), (2, 0), (3, 8 * SECOND)):
        rank = Tracee(profile, pid, "rank", pid, "rank").run(SECOND)
        rank.wait(READ, "interruptible", 9 * SECOND - sleeps, 500)
        if sleeps:
            rank.wait(SLEEP, "interruptible", sleeps, 500)
    (verdict,) = find(facts_of(profile))
    assert verdict.cause and verdict.cause.threads == ((3, 3),)
    assert (verdict.pids, verdict.time) == ({1, 2}, 18 * SECOND)


@pytest.mark.parametrize(
    ("profile", "confidence"),
    [
        (waiting(READ), 1),
        (one(READ, 10 * SECOND), 0.2),  # it never moved, and nobody knows why
        (waiting(POLL), 0.2),
        (one(POLL, 9 * SECOND, runs=SECOND), 0.6),
        (whole_host(waiting(READ)), 0.2),
        (whole_host(one(READ, 9 * SECOND, runs=SECOND)), 1),
        (waiting(SLEEP), 1),
    ],
)
def test_how_much_is_believed(profile: Profile, confidence: float) -> None:
    (verdict,) = find(facts_of(profile))
    assert verdict.confidence == confidence


def test_a_cause_makes_a_wait_without_a_move_certain() -> None:
    profile = one(READ, 10 * SECOND)
    Tracee(profile, 5, "server", 5, "server").run(SECOND).wait(SLEEP, "interruptible", 9 * SECOND, 90)
    assert [verdict.confidence for verdict in find(facts_of(profile))] == [1]


def test_nobody_causes_a_sleep_so_that_a_shorter_wait_matters_more() -> None:
    profile = waiting(SLEEP)
    Tracee(profile, 5, "client", 5, "client").run(SECOND).wait(READ, "interruptible", 5 * SECOND, 90)
    assert [verdict.kind for verdict in find(facts_of(profile))] == ["peer"]


@pytest.mark.parametrize(
    "profile",
    [
        one(READ, 490 * MS, runs=9_510 * MS),  # for too little of its time
        one(MUTEX, 9 * SECOND, runs=SECOND),  # a lock has a holder
        one(READ, 9 * SECOND, runs=SECOND, state="uninterruptible"),  # the kernel ends it
    ],
)
def test_nobody_waits_for_others(profile: Profile) -> None:
    assert find(facts_of(profile)) == []


def test_workers_stand_for_their_process_only_where_the_main_thread_waits_for_their_end() -> None:
    def beside(stack: Stack) -> Profile:
        profile = one(stack, 10 * SECOND, count=1)
        for tid in (2, 3):
            worker = Tracee(profile, 1, "app", tid, "w").run(SECOND)
            worker.wait(READ, "interruptible", 6 * SECOND, 90).wait(SLEEP, "interruptible", 3 * SECOND, 90)
        return profile

    join = (*user(EXE, "main"), *user(LIBC, "pthread_join"), *kernel("futex_wait"))
    (verdict,) = find(facts_of(beside(join)))
    assert verdict.finding and verdict.finding.threads == ((1, 2), (1, 3))
    (verdict,) = find(facts_of(beside(READ)))
    assert verdict.finding and (1, 1) in verdict.finding.threads


def test_a_main_thread_that_never_moved_beside_a_pool_in_the_same_place_delays_nobody() -> None:
    parked = (*user(EXE, "[server]"), *user(LIBC, "[server]"), *FUTEX)
    profile = empty()
    main = Tracee(profile, 1, "server", 1, "server").wait(parked, "interruptible", 10 * SECOND, still=True)
    for tid in (2, 3):
        worker = Tracee(profile, 1, "server", tid, "server").run(SECOND)
        worker.wait(parked, "interruptible", 6 * SECOND, 200).wait(FSYNC, "uninterruptible", 3 * SECOND, 50)
    (verdict,) = find(facts_of(profile))
    assert (verdict.kind, verdict.confidence) == ("thread", 0.2)
    first = judge(facts_of(profile)).first
    assert first and first.kind == "io"
    main.run(SECOND)
    (verdict,) = find(facts_of(profile))
    assert verdict.confidence == 1


def test_who_asks_does_not_wait_for_work() -> None:
    asks = (
        *user(EXE, "main"),
        *user(Module("/usr/lib/libpq.so.5"), "PQexec", "pqWait"),
        *user(LIBC, "poll"),
        *POLL[-8:],
    )
    for stack, confidence in ((READ, 0.2), (asks, 1)):
        (verdict,) = find(facts_of(whole_host(one(stack, 9 * SECOND, runs=MS))))
        assert (verdict.kind, verdict.confidence) == ("peer", confidence)


@pytest.mark.parametrize(("child", "confidence"), [(SLEEP, thresholds.FOR_WORK_SAVES), (READ, 1)])
def test_a_shell_whose_child_sleeps_is_kept_waiting_by_nobody(child: Stack, confidence: float) -> None:
    (verdict,) = find(facts_of(waiting(CHILD, (5, 5, "tool", child, 10_000))))
    assert verdict.kind == "child"
    assert verdict.confidence == confidence


def test_shells_that_sleep_do_not_come_before_a_job() -> None:
    profile = one(FSYNC, 9 * SECOND, state="uninterruptible", runs=SECOND)
    for pid in range(10, 18, 2):
        Tracee(profile, pid, "bash", pid, "bash").run(100 * MS).wait(CHILD, "interruptible", 9_900 * MS, 500)
        Tracee(profile, pid + 1, "sleep", pid + 1, "sleep").wait(SLEEP, "interruptible", 10 * SECOND, 500)
    first = judge(facts_of(profile)).first
    assert first
    assert first.kind == "io"


def test_another_wait_comes_before_that_of_shells_that_sleep() -> None:
    profile = waiting(READ)
    for pid in range(10, 18, 2):
        Tracee(profile, pid, "bash", pid, "bash").run(100 * MS).wait(CHILD, "interruptible", 9_900 * MS, 500)
        Tracee(profile, pid + 1, "sleep", pid + 1, "sleep").wait(SLEEP, "interruptible", 10 * SECOND, 500)
    (verdict,) = find(facts_of(profile))
    assert (verdict.kind, verdict.pids) == ("peer", {1})
