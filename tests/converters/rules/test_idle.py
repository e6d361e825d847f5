from __future__ import annotations

import pytest
from stallscope.converters.model import Profile, Stack
from stallscope.converters.rules.idle import find
from summary_profiles import MS, POLL, READ, SECOND, Tracee, facts_of
from verdict_profiles import FSYNC, serving


def test_a_server_that_has_nothing_to_do() -> None:
    (verdict,) = find(facts_of(serving()))
    assert (verdict.rule, verdict.kind, verdict.pids, verdict.time) == ("idle", "idle", {1}, 9_990 * MS)
    assert verdict.finding
    assert verdict.finding.threads == ((1, 1),)


def beside(stack: Stack) -> Profile:
    """Another process waits elsewhere."""
    profile = serving()
    Tracee(profile, 5, "app", 5, "app").run(MS).wait(stack, "interruptible", 10 * SECOND - MS, 9)
    return profile


@pytest.mark.parametrize(
    "profile",
    [serving(POLL), serving(READ), serving(runs=SECOND), serving(runs=0), beside(FSYNC), beside(READ), beside(POLL)],
)
def test_what_may_wait_for_somebody_is_not_idle(profile: Profile) -> None:
    """Waits for one of few files, for a peer, for a disk, are not idle; nor is what runs, or has not moved at all."""
    assert find(facts_of(profile)) == []
