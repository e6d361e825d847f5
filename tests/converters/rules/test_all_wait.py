from __future__ import annotations

import pytest
from stallscope.converters.model import Stack
from stallscope.converters.rules.all_wait import find
from summary_profiles import POLL, POOL, READ, facts_of, waiting
from verdict_profiles import all_waiting, deadlocked


def test_threads_that_nobody_can_wake() -> None:
    (verdict,) = find(facts_of(all_waiting()))
    assert (verdict.rule, verdict.kind, verdict.pids, verdict.confidence) == ("all-wait", "deadlock", {1}, 1)
    assert verdict.finding
    assert verdict.finding.threads == ((1, 1), (1, 2))
    assert len(find(facts_of(deadlocked()))) == 1, "also locks"


@pytest.mark.parametrize(("last", "moves"), [(POOL, 1), (READ, 0), (POLL, 0)])
def test_one_that_moves_or_that_somebody_else_may_wake(last: Stack, moves: int) -> None:
    assert find(facts_of(all_waiting(last, moves))) == []


def test_a_single_thread_may_wait_for_another_process() -> None:
    assert find(facts_of(waiting(POOL))) == []
