from __future__ import annotations

import pytest
from stallscope.converters.model import Profile
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
