"""Words for pools of threads."""

from __future__ import annotations

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


def test_a_place() -> None:
    assert made_in(("next_epoch", "start_thread")) == " in next_epoch → start_thread"
    assert made_in(()) == ""
