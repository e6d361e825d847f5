from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from processes import crowd, pools
from stallscope.converters.model import Profile
from stallscope.converters.rules.pool_anew import Pool, find
from summary_profiles import MS, SECOND, facts_of


def changed(**change: Any) -> Profile:
    """The pool whose threads differ so."""
    made = pools()
    made.threads = [made.threads[0], *(replace(times, **change) for times in made.threads[1:])]
    return made


def test_threads_that_are_made_anew() -> None:
    (verdict,) = find(facts_of(pools()))
    assert (verdict.rule, verdict.kind, verdict.time, verdict.confidence) == ("pool-anew", "pool-anew", 8 * SECOND, 1)
    assert (verdict.pids, verdict.finding) == ({7}, None)
    assert verdict.detail == Pool("serve", "pool-*", 10 * SECOND, 4000, 8 * SECOND, 2 * SECOND, {"main"}, {7})


@pytest.mark.parametrize(
    "made",
    [
        pools(number=499),  # 49.9 a second
        pools(1, number=19),
        pools(number=600, life=2 * SECOND + MS),
        changed(creator=0),
        changed(exited=False),
        changed(thread="[other names]"),
    ],
)
def test_no_pool_is_made_anew(made: Profile) -> None:
    assert find(facts_of(made)) == []


def test_a_pool_that_costs_next_to_nothing_beside_others() -> None:
    made = pools()
    busy = crowd()
    made.processes += busy.processes
    made.threads += busy.threads
    assert find(facts_of(made)) == []
