from __future__ import annotations

import pytest
from stallscope.converters.facts.facts import Facts
from stallscope.converters.facts.thread_roles import roles_of
from stallscope.converters.model import Profile, Stack, ThreadTimes
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
    idle_pool,
    kernel,
    user,
    waiting,
)
from verdict_profiles import FSYNC, one, whole_host, with_quota, with_stuck

JOIN = (*user(EXE, "main"), *user(LIBC, "pthread_join"), *kernel("futex_wait"))


def led_by(stack: Stack, times: int = 1, worker_waits: int = 9 * SECOND) -> Facts:
    """A main thread waits all the time; its two workers read and sleep."""
    profile = one(stack, 10 * SECOND, count=times)
    for tid in (2, 3):
        worker = Tracee(profile, 1, "app", tid, f"w-{tid}").run(10 * SECOND - worker_waits)
        for own in (READ, SLEEP):
            worker.wait(own, "interruptible", worker_waits // 2, 90)
    return facts_of(profile)


def test_waits_of_a_thread() -> None:
    facts = facts_of(waiting(READ, (1, 2, "w", SLEEP, 0)))
    ((place, total),) = facts.waits_of((1, 1)).items()
    assert (place.kind, total.time) == ("peer", 9_900 * MS)
    assert facts.waits_of((1, 2)) == {}
    assert facts.waits_of((4, 4)) == {}


def test_names_of_threads_and_processes_have_no_final_number() -> None:
    profile = empty()
    Tracee(profile, 7, "rank-3", 7, "rank-3").run(SECOND)
    Tracee(profile, 7, "rank-3", 8, "pool-12").run(SECOND)
    facts = facts_of(profile)
    assert (facts.process_of((7, 8)), facts.name_of((7, 8)), facts.name_of((7, 7))) == ("rank-*", "pool-*", "main")
    assert facts.process_names == {"rank-*"}


def test_who_is_idle_and_who_only_waits() -> None:
    facts = facts_of(idle_pool())
    assert facts.is_idle((7, 100)) and facts.is_quiet((7, 100))
    assert not facts.is_idle((7, 200)) and not facts.is_quiet((7, 200))
    main = facts_of(waiting(READ))
    assert main.is_quiet((1, 1)) and not main.is_idle((1, 1))
    assert not facts_of(one(READ, 9_800 * MS, runs=200 * MS)).is_quiet((1, 1))


def test_threads_that_only_wait_are_not_active() -> None:
    assert facts_of(idle_pool()).active_wall == 2 * 10 * SECOND
    assert facts_of(waiting(READ, (5, 5, "tool", SLEEP, 5_000))).active_wall == 10 * SECOND


def test_processes_in_which_no_thread_moved() -> None:
    facts = facts_of(with_stuck(one(FSYNC, 9 * SECOND, runs=SECOND)))
    assert (facts.still_pids, facts.pids_moving) == ({9}, {1})
    assert facts.are_still([(9, 9)]) and not facts.are_still([(9, 9), (1, 1)])
    moving = with_stuck(empty())
    Tracee(moving, 9, "stuck", 10, "helper").run(MS)
    assert (facts_of(moving).still_pids, facts_of(moving).pids_moving) == (set(), {9})


def test_processes_at_work() -> None:
    """Processes at work use cores, or switch often; the threads of a process count together."""
    profile = empty()
    for pid, runs, switches in ((1, 50 * MS, 1), (2, 49 * MS, 49), (3, MS, 50)):
        Tracee(profile, pid, "app", pid, "app").run(runs).wait(READ, "interruptible", SECOND, switches)
    for tid in (4, 5):
        Tracee(profile, 4, "app", tid, "w").run(25 * MS).wait(READ, "interruptible", SECOND, 1)
    assert facts_of(profile).at_work == {1, 3, 4}


def test_main_threads_are_those_of_processes_at_work() -> None:
    profile = waiting(READ, (1, 2, "w", SLEEP, 5_000))
    assert facts_of(with_stuck(profile)).mains() == [(1, 1)]


def test_main_threads_where_no_process_is_at_work_are_those_that_moved() -> None:
    profile = one(READ, 9 * SECOND, runs=MS, count=1)
    assert facts_of(with_stuck(profile)).mains() == [(1, 1)]
    assert facts_of(with_stuck(empty())).mains() == [(9, 9)], "or all"


def test_threads_stand_for_main_threads_that_were_not_traced() -> None:
    profile = empty()
    Tracee(profile, 1, "app", 2, "w").run(SECOND)
    assert facts_of(profile).mains() == [(1, 2)]


@pytest.mark.parametrize(
    ("facts", "mains"),
    [
        (led_by(JOIN), [(1, 2), (1, 3)]),
        (led_by(READ), [(1, 1)]),
        (led_by(JOIN, worker_waits=4 * SECOND), [(1, 1)]),  # they run: nothing holds them up
    ],
)
def test_workers_in_place_of_a_main_thread_that_waits_for_their_end(facts: Facts, mains: list[tuple[int, int]]) -> None:
    assert facts.mains() == mains
    assert [thread for thread in sorted(facts.threads) if facts.is_main(thread)] == mains


def test_threads_of_the_kernel_make_it_a_whole_host() -> None:
    facts = facts_of(whole_host(waiting(READ)))
    assert facts.is_whole_host and facts.own == [(1, 1)]
    assert not facts_of(waiting(READ)).is_whole_host
    only_kernel = facts_of(whole_host(empty()))
    assert not only_kernel.is_whole_host and only_kernel.own == [(2, 2)]


def test_processes_that_hardly_use_a_core() -> None:
    """Slight processes are told on a whole host; each process of the threads may use as much."""

    def slight(runs: int, second: int = 0) -> Facts:
        profile = one(READ, 9 * SECOND, runs=runs)
        Tracee(profile, 1, "app", 3, "w").run(second)
        return facts_of(whole_host(profile))

    assert slight(199 * MS).are_slight([(1, 1)])
    assert not slight(200 * MS).are_slight([(1, 1)])
    assert not slight(199 * MS, MS).are_slight([(1, 1)])
    assert slight(399 * MS).are_slight([(1, 1), (2, 2)])
    assert not facts_of(one(READ, 9 * SECOND)).are_slight([(1, 1)])


def test_where_a_process_is() -> None:
    profile = waiting(READ, (1, 2, "w", SLEEP, 9_950))
    profile.samples.append(profile.samples[0]._replace(stack=POLL, values=(MS, 1, MS, MS)))
    name, place = facts_of(profile).where_of(1)
    assert (name, place and place.kind) == ("app", "peer"), "its main thread's longest wait"
    workers = empty()
    for tid, stack in ((9, POLL), (8, SLEEP)):
        Tracee(workers, 7, "app-1", tid, "w").wait(stack, "interruptible", SECOND)
    name, place = facts_of(workers).where_of(7)
    assert (name, place and place.kind) == ("app-*", "sleep"), "its first thread's"


@pytest.mark.parametrize(("state", "known"), [("interruptible", False), ("stopped", True)])
def test_where_a_process_without_a_stack_is(state: str, known: bool) -> None:
    _, place = facts_of(one(user(None, "[no stack]"), SECOND, state=state)).where_of(1)
    assert (place is not None) is known
    running = empty()
    Tracee(running, 1, "app", 1, "app").run(SECOND)
    assert facts_of(running).where_of(1) == ("app", None)


def test_times_by_place_of_several_threads() -> None:
    facts = facts_of(waiting(READ, (1, 2, "w", READ, 3_000), (1, 3, "w", SLEEP, 2_000)))
    times = {place.kind: time for place, time in facts.places_of([(1, 1), (1, 2), (1, 3)]).items()}
    assert times == {"peer": 12_900 * MS, "sleep": 2_000 * MS}


def test_times_of_several_threads() -> None:
    profile = waiting(READ, (1, 2, "w", SLEEP, 2_000))
    assert facts_of(profile).wall_of([(1, 1), (1, 2)]) == 20 * SECOND
    Tracee(profile, 1, "app", 3, "unknown")
    assert facts_of(profile).wall_of([(1, 1), (1, 3)]) == 0
    assert facts_of(profile).wall_of([]) == 0


def test_problems_with_cores_are_measured_by_all_running_and_waiting() -> None:
    profile = with_quota(waiting(READ), SECOND)
    assert facts_of(profile).least_for_cores == 0
    profile.threads[-1].on_cpu, profile.threads[-1].runnable = 3 * SECOND, 2 * SECOND
    assert facts_of(profile).least_for_cores == pytest.approx(0.02 * 5 * SECOND)


def test_both_lives_of_a_thread_id_are_accounts() -> None:
    lives = [ThreadTimes(1, "app", 2, name, SECOND, 0, 0, {}) for name in ("first", "second")]
    profile = Profile(empty().value_types, threads=lives)
    assert [each.thread for each in facts_of(profile).accounts] == ["first", "second"]
    threads = {(1, 2): lives[0]}
    made = Facts({}, threads, roles_of({}, threads), 0)
    assert (made.accounts, made.contention, made.gil) == ((lives[0],), (), ())
    assert (made.pools, made.neighbours, made.runs) == (None, (), {})
