from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from processes import crowd, pools, process, threads
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


def places(**shares: float) -> tuple[str, ...]:
    """The place that is told of a pool, if these shares of it were created in these functions; "unknown" is unknown."""
    made = pools(number=1000)
    names = [name for name, share in shares.items() for _ in range(round(1000 * share))]
    for times, name in zip(made.threads[1:], names, strict=True):
        times.made_in = () if name == "unknown" else ("main", name)
    (verdict,) = find(facts_of(made))
    assert isinstance(verdict.detail, Pool)
    return verdict.detail.made_in


def test_the_place_that_creates_them() -> None:
    assert places(next_epoch=1) == ("main", "next_epoch")
    assert places(next_epoch=0.46, other=0.04, unknown=0.5) == ("main", "next_epoch")


def test_no_place_if_there_are_several_or_most_are_not_known() -> None:
    assert places(next_epoch=0.8, other=0.2) == ()
    assert places(next_epoch=0.49, unknown=0.51) == ()
    assert places(unknown=1) == ()


def test_one_program_with_threads_of_many_names() -> None:
    made = pools()
    for number, name in ((1500, "evil-1"), (1000, "<b>-2"), (499, "few-1")):
        threads(made, 7, "serve", name, number, wall=MS, on_cpu=MS // 2, creator=7, exited=True)
    (verdict,) = find(facts_of(made))
    assert isinstance(verdict.detail, Pool)
    found = verdict.detail
    assert (found.thread, found.more_names, found.threads, found.wall) == ("pool-*", 2, 6500, 10_500 * MS)
    assert verdict.time == found.wall


def test_several_programs() -> None:
    made = pools()
    process(made, 10**5, "other")
    threads(made, 10**5, "other", "other", wall=10 * SECOND)
    threads(made, 10**5, "other", "pool-1", 1500, wall=MS, on_cpu=MS // 2, creator=10**5, exited=True)
    details = [verdict.detail for verdict in find(facts_of(made))]
    assert [(each.process, each.more_names) for each in details if isinstance(each, Pool)] == [
        ("serve", 0),
        ("other", 0),
    ]
