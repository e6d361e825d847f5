from __future__ import annotations

import pytest
from file_lock_profiles import held, waits_for
from stallscope.converters.model import Profile
from stallscope.converters.phrases.sentences import Sentences
from stallscope.converters.rules.deadlock import find
from summary_profiles import POOL, SECOND, empty, facts_of
from verdict_profiles import FSYNC, LOCK, deadlocked


def test_threads_that_wait_for_locks_and_never_move() -> None:
    (verdict,) = find(facts_of(deadlocked()))
    assert (verdict.rule, verdict.kind, verdict.time, verdict.confidence) == ("deadlock", "deadlock", 20 * SECOND, 1)
    assert verdict.finding
    assert (verdict.finding.kind, verdict.finding.threads, verdict.pids) == ("lock", ((1, 1), (1, 2)), {1})


def test_who_waits_for_something_else_is_not_among_them() -> None:
    (verdict,) = find(facts_of(deadlocked(stacks=(LOCK, LOCK, POOL, FSYNC))))
    assert verdict.finding and verdict.finding.threads == ((1, 1), (1, 2))


def test_each_process_has_its_own() -> None:
    found = find(facts_of(deadlocked(7, to=deadlocked(1))))
    assert [verdict.pids for verdict in found] == [{1}, {7}]


@pytest.mark.parametrize(
    "profile",
    [
        deadlocked(moves=1),  # one of the two ran, if for a nanosecond
        deadlocked(stacks=(LOCK,)),
        deadlocked(stacks=(LOCK, POOL)),  # one waits for another thread
        deadlocked(stacks=(LOCK, FSYNC)),  # one is blocked, but by no lock of the program
        deadlocked(1, (LOCK,), to=deadlocked(7, (LOCK,))),  # one each of two processes
        empty(),
    ],
)
def test_no_deadlock(profile: Profile) -> None:
    assert find(facts_of(profile)) == []


def test_processes_that_wait_for_each_others_locks_on_files() -> None:
    facts = facts_of(held(waits_for(1, 2, "/a"), waits_for(2, 1, "/b"), pids=(1, 2)))
    (verdict,) = find(facts)
    assert (verdict.kind, verdict.pids) == ("deadlock", {1, 2})
    assert Sentences(facts).of(verdict) == (
        "P1 (pid 1) waits for the lock of /a, which p2 (pid 2) has; p2 (pid 2) waits for the lock of /b, which p1 "
        "(pid 1) has: a deadlock, in main → build → flock."
    )


def test_the_other_one_of_a_cycle_is_not_traced() -> None:
    facts = facts_of(held(waits_for(1, 2), waits_for(2, 1)))
    assert [verdict.pids for verdict in find(facts)] == [{1}]


@pytest.mark.parametrize(
    "profile",
    [
        held(waits_for(1, 2), pids=(1, 2)),  # the other one waits for somebody else's
        held(waits_for(1, 2), waits_for(2, 1, seen=9), pids=(1, 2)),  # it did not always wait
        held(waits_for(1, 2), waits_for(2, 1), pids=(1, 2), waits=100),  # they moved
        held(waits_for(1, 2), waits_for(2, 1), pids=(3,)),
    ],
)
def test_no_deadlock_by_files(profile: Profile) -> None:
    assert find(facts_of(profile)) == []
