"""Words for pools of threads."""

from __future__ import annotations

from typing import Any

import pytest
from pool_profiles import two_pools
from stallscope.converters.facts.pools import pools_of
from stallscope.converters.phrases.pools import made_in, pools
from summary_profiles import facts_of


def test_words() -> None:
    readers, writers = pools_of(facts_of(two_pools()))
    before = readers._replace(made_in=())
    unknown = before._replace(fed_in=())
    assert pools([readers, writers]) == (
        "They are in pools: 3 threads made in start_readers → start_pool, 2 made in start_writers → start_pool."
    )
    assert pools([before, unknown, unknown._replace(runs="")], beside=True) == (
        "Others are in pools: 3 threads fed in main → feed_readers → futex, 3 worker-* threads that run run_tasks, 3 "
        "worker-* threads."
    )
    assert pools([]) == ""


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"thread": "alpha-*"}, "3 worker-* threads made in start → make, 2 alpha-* threads made in start → make."),
        (
            {"runs": "read_all"},
            "3 threads made in start → make that run run_tasks, 2 made in start → make that run read_all.",
        ),
        (
            {"fed_in": ("put",)},
            "3 threads made in start → make and fed in give, 2 made in start → make and fed in put.",
        ),
        ({}, "5 threads made in start → make."),
        ({"made_in": ("start", "call")}, "3 threads made in start → make, 2 made in start → call."),
    ],
)
def test_pools_of_one_place_are_told_apart(change: dict[str, Any], text: str) -> None:
    readers, writers = (
        pool._replace(made_in=("start", "make"), fed_in=("give",)) for pool in pools_of(facts_of(two_pools()))
    )
    assert pools([readers, writers._replace(**change)]) == f"They are in pools: {text}"


def test_those_that_nothing_tells_apart_are_added_up_apart_by_their_names() -> None:
    readers, writers = (pool._replace(made_in=("make",), fed_in=()) for pool in pools_of(facts_of(two_pools())))
    others = [writers._replace(thread=f"{name}-*") for name in "abc"]
    made = "threads made in make"
    assert pools([readers, *others, writers]) == (
        f"They are in pools: 5 worker-* {made}, 2 a-* {made}, 2 b-* {made}, 1 more pool."
    )
    both = [others[0]._replace(runs="read"), others[0]._replace(thread="b-*", fed_in=("put",))]
    assert pools([others[0], *both]) == (
        f"They are in pools: 2 a-* {made} that run run_tasks, 2 a-* {made} that run read, 2 b-* {made} that run "
        "run_tasks and fed in put."
    )


def test_a_place() -> None:
    assert made_in(("next_epoch", "start_thread")) == " in next_epoch → start_thread"
    assert made_in(()) == ""
