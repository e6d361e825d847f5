from __future__ import annotations

from stallscope.converters.rules.for_others import effects, waits_beside_work
from summary_profiles import (
    EXE,
    LIBC,
    MS,
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
