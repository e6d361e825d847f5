from __future__ import annotations

from stallscope.converters.rules.workers import find
from summary_profiles import (
    POLL,
    POOL,
    READ,
    SECOND,
    facts_of,
    waiting,
)


def test_the_longest_wait_of_threads_beside_the_main_one() -> None:
    profile = waiting(POLL, (1, 2, "w", READ, 8_000), (1, 3, "w", READ, 8_000), (1, 4, "idle", POOL, 10_000))
    (workers,) = (verdict.finding for verdict in find(facts_of(profile)))
    assert workers
    assert (workers.kind, workers.threads, workers.time) == ("peer", ((1, 2), (1, 3)), 16 * SECOND)
