from __future__ import annotations

from stallscope.converters.rules.busy import busy
from summary_profiles import (
    READ,
    SECOND,
    SLEEP,
    facts_of,
    waiting,
)


def test_busy_threads_by_name() -> None:
    profile = waiting(READ, (1, 2, "w-1", SLEEP, 0), (1, 3, "w-2", SLEEP, 0))
    first, *_ = busy(facts_of(profile))
    assert (first.kind, first.threads, first.time) == ("cpu", ((1, 2), (1, 3)), 20 * SECOND)
