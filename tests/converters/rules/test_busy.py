from __future__ import annotations

from dataclasses import replace

import pytest
from idle_hosts import SLEEP as TICK
from idle_hosts import TIMER, Host
from pool_profiles import READERS, WRITERS, add_pool, no_pools
from stallscope.converters.model import Profile
from stallscope.converters.phrases.sentences import Sentences
from stallscope.converters.rules.busy import Busy, LostIn, busy, confidence, find, lost_in
from summary_profiles import MS, MUTEX, READ, SECOND, SLEEP, SPIN, facts_of, waiting
from verdict_profiles import one, whole_host, yielding


def test_busy_threads_by_name() -> None:
    profile = waiting(READ, (1, 2, "w-1", SLEEP, 0), (1, 3, "w-2", SLEEP, 0))
    first, *_ = busy(facts_of(profile))
    assert (first.kind, first.threads, first.time) == ("cpu", ((1, 2), (1, 3)), 20 * SECOND)


def test_what_is_told_of_it() -> None:
    profile = waiting(READ, (1, 2, "w-1", SLEEP, 2_000), (1, 3, "w-2", SLEEP, 2_000), (5, 5, "tool", SLEEP, 5_000))
    profile.threads[-1].runnable, profile.threads[-1].on_cpu = 3 * SECOND, 2 * SECOND
    (verdict,) = find(facts_of(profile))
    assert (verdict.rule, verdict.kind, verdict.time, verdict.pids) == ("busy", "cpu", 21 * SECOND, frozenset())
    assert verdict.finding and isinstance(verdict.detail, Busy)
    assert (verdict.finding.kind, verdict.finding.threads) == ("cpu", ((1, 2), (1, 3)))
    assert [(each.threads, each.time, each.runnable) for each in verdict.detail.groups] == [
        (((1, 2), (1, 3)), 16 * SECOND, 0),
        (((5, 5),), 5 * SECOND, 3 * SECOND),
    ]
    assert verdict.detail[1:] == (3, 4, 18 * SECOND, 3 * SECOND, 30 * SECOND, None, (), (), ())


@pytest.mark.parametrize(
    ("has_samples", "runnable", "confidence"), [(False, 0, 0.5), (True, 0, 1), (False, 9, 0.75), (True, 3, 11 / 12)]
)
def test_how_much_is_believed(has_samples: bool, runnable: int, confidence: float) -> None:
    profile = one(SLEEP, SECOND, runs=(9 - runnable) * SECOND)
    profile.threads[0].runnable = runnable * SECOND
    (verdict,) = find(facts_of(profile, has_samples=has_samples))
    assert verdict.confidence == pytest.approx(confidence)


def test_what_is_explained_is_not_believed_again() -> None:
    facts = facts_of(waiting(READ, (1, 2, "w", SLEEP, 4_000), (5, 5, "tool", SLEEP, 8_000)))
    groups = busy(facts)
    assert confidence(facts, groups) == 0.5
    assert confidence(facts, groups, frozenset((5,))) == pytest.approx(0.5 * 6 / 8)
    assert confidence(facts, groups, frozenset((1, 5))) == 0
    assert confidence(facts, []) == 0


@pytest.mark.parametrize(
    "profile",
    [
        one(MUTEX, 9_510 * MS, runs=490 * MS),  # for too little of its time
        waiting(READ),  # it only waits
        whole_host(one(READ, 10 * SECOND)),
    ],
)
def test_nobody_is_busy(profile: Profile) -> None:
    assert find(facts_of(profile)) == []


def test_threads_of_the_kernel_do_not_count() -> None:
    profile = whole_host(one(MUTEX, 10 * SECOND))
    profile.threads[-1].on_cpu = 9 * SECOND
    assert find(facts_of(profile)) == []


def test_where_threads_lose_their_cores() -> None:
    """Preemptions are not needed where samples tell where threads run."""
    made = yielding(5, 15)
    for has_samples, lost in ((False, LostIn(("main", "compute"), 15, 20)), (True, None)):
        (verdict,) = find(facts_of(made, has_samples=has_samples))
        assert isinstance(verdict.detail, Busy)
        assert verdict.detail.lost_in == lost


@pytest.mark.parametrize(("asks", "works"), [(0, 9), (0, 0)])
def test_no_place_stands_out(asks: int, works: int) -> None:
    facts = facts_of(yielding(asks, works))
    assert lost_in(facts, busy(facts)[0]) is None


@pytest.mark.parametrize(("runnable", "kind"), [(5, "cpu"), (6, "cores")])
def test_who_mostly_waits_for_a_core(runnable: int, kind: str) -> None:
    profile = one(SPIN, runnable * SECOND, runs=(10 - runnable) * SECOND, state="runnable-preempted")
    (verdict,) = find(facts_of(profile))
    assert verdict.kind == kind


@pytest.mark.parametrize(("waits_ms", "found"), [(920, False), (420, True)])
def test_idle_threads_that_only_wake_up_late(waits_ms: int, found: bool) -> None:
    """Threads that sleep in a steady interval, and wait for a core after each sleep, may be told or not."""
    profile = Host().wait(7, 7, TICK, waits_ms, TIMER, each=10).made()
    (thread,) = profile.threads
    thread.runnable, thread.on_cpu = thread.on_cpu, 0
    facts = facts_of(profile)
    facts.roles = replace(facts.roles, idle=frozenset(((7, 7),)))
    assert bool(find(facts)) is found
    facts.roles = replace(facts.roles, idle=frozenset())
    assert find(facts), "it is not known to be idle"


def test_several_pools_with_threads_of_one_name_are_told() -> None:
    made = no_pools("0-7")
    add_pool(made, 3, made_in=READERS, wants=8)
    add_pool(made, 2, made_in=WRITERS, wants=8)
    facts = facts_of(made)
    (verdict,) = find(facts)
    assert isinstance(verdict.detail, Busy)
    assert [(pool.made_in, pool.threads) for pool in verdict.detail.pools] == [(READERS, 3), (WRITERS, 2)]
    said = "They are in pools: 3 threads made in start_readers → start_pool, 2 made in start_writers → start_pool."
    assert Sentences(facts).of(verdict).endswith(f". {said}")


def test_one_pool_and_a_small_one_are_not_told() -> None:
    made = no_pools("0-7")
    add_pool(made, 3, made_in=READERS, wants=8)
    add_pool(made, 2, made_in=WRITERS, wants=0.5)
    (verdict,) = find(facts_of(made))
    assert isinstance(verdict.detail, Busy)
    assert verdict.detail.pools == ()
