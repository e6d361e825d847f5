from __future__ import annotations

import pytest
from stallscope.converters.model import Profile, Stack
from stallscope.converters.rules.workers import find
from summary_profiles import MS, POLL, POOL, READ, SECOND, SLEEP, Tracee, empty, facts_of, waiting
from verdict_profiles import FSYNC, workers


def test_the_longest_wait_of_threads_beside_the_main_one() -> None:
    profile = waiting(POLL, (1, 2, "w", READ, 8_000), (1, 3, "w", READ, 8_000), (1, 4, "idle", POOL, 10_000))
    (longest,) = (verdict.finding for verdict in find(facts_of(profile)))
    assert longest
    assert (longest.kind, longest.threads, longest.time) == ("peer", ((1, 2), (1, 3)), 16 * SECOND)


def test_what_is_told_of_it() -> None:
    (verdict,) = find(facts_of(workers()))
    assert (verdict.rule, verdict.kind, verdict.time) == ("workers", "peer", 16 * SECOND)
    assert (verdict.confidence, verdict.pids, verdict.is_effect) == (0.5, {1}, True)


@pytest.mark.parametrize(("stack", "confidence"), [(READ, 0.5), (SLEEP, 0.25), (POLL, 0.1)])
def test_how_much_is_believed(stack: Stack, confidence: float) -> None:
    (verdict,) = find(facts_of(workers(stack)))
    assert verdict.confidence == pytest.approx(confidence)


@pytest.mark.parametrize(
    "profile",
    [
        waiting(READ),  # a main thread is none
        workers(waits=490 * MS, runs=9_510 * MS),  # for too little of their time
        workers(waits=9_950 * MS, runs=50 * MS),  # they do nothing but wait
        workers(FSYNC),  # the kernel ends it, as far as known
    ],
)
def test_no_workers(profile: Profile) -> None:
    assert find(facts_of(profile)) == []


def test_workers_of_a_process_that_is_not_at_work() -> None:
    """A process that is not at work uses no core, and switches seldom."""

    def found(runs: int) -> bool:
        profile = empty()
        worker = Tracee(profile, 1, "app", 2, "w").run(runs)
        worker.wait(READ, "interruptible", 5 * SECOND, 9).wait(SLEEP, "interruptible", 5 * SECOND, 9)
        return bool(find(facts_of(profile)))

    assert found(50 * MS)
    assert not found(49 * MS)
