from __future__ import annotations

import pytest
from stallscope.converters.model import Frame, Module, Profile
from stallscope.converters.rules.longest import find
from summary_profiles import FUTEX, MS, READ, SECOND, SLEEP, SPIN, Tracee, empty, facts_of, idle_pool, user
from verdict_profiles import FSYNC, one, with_stuck

PARKED = (*user(Module("/srv/tokcache"), "runtime.schedule", "runtime.findRunnable"), *FUTEX)
"""Stack of a thread of Go that has no goroutine to run."""
NOWHERE = (Frame("[no stack]", "other"),)


def test_the_longest_wait() -> None:
    profile = one(SLEEP, 200 * MS, runs=MS)
    Tracee(profile, 1, "app", 2, "w").run(MS).wait(FSYNC, "uninterruptible", 300 * MS, 3)
    (verdict,) = find(facts_of(profile))
    assert (verdict.rule, verdict.kind, verdict.time, verdict.confidence) == ("longest", "io", 300 * MS, 0)
    assert verdict.finding
    assert (verdict.finding.kind, verdict.finding.threads, verdict.pids) == ("held", ((1, 2),), {1})


def test_waits_in_one_place_are_added_up() -> None:
    profile = one(FSYNC, 300 * MS, runs=MS, state="uninterruptible")
    for tid in (2, 3):
        Tracee(profile, 1, "app", tid, "w").run(MS).wait(READ, "interruptible", 200 * MS, 3)
    (verdict,) = find(facts_of(profile))
    assert (verdict.kind, verdict.time) == ("peer", 400 * MS)


def test_idle_threads_are_not_told() -> None:
    (verdict,) = find(facts_of(idle_pool()))
    assert verdict.finding and verdict.finding.threads == ((7, 7),)


def test_who_is_stopped_is_told_wherever() -> None:
    (verdict,) = find(facts_of(one(NOWHERE, SECOND, runs=MS, state="stopped")))
    assert verdict.kind == "stopped"


@pytest.mark.parametrize(
    "profile",
    [
        with_stuck(empty()),  # it did not move
        one(SPIN, SECOND, runs=MS, state="runnable-preempted"),  # for a core
        one(NOWHERE, SECOND, runs=MS),  # nobody knows where
        one(PARKED, SECOND, runs=MS),  # for work, in a runtime
        empty(),
    ],
)
def test_nothing_to_tell(profile: Profile) -> None:
    assert find(facts_of(profile)) == []
