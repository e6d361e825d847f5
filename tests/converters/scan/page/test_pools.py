"""Pools of threads on a page."""

from __future__ import annotations

import json

from pool_profiles import READERS, add_pool, no_pools, two_pools
from scans import HOSTILE
from stallscope.converters.base.text import printable
from stallscope.converters.scan.page.pools import pools_data
from summary_profiles import SECOND, facts_of


def test_rows() -> None:
    readers, writers = pools_data(facts_of(two_pools()), 9)
    assert readers == {
        "name": "app (700)",
        "thread": "worker-*",
        "runs": "run_tasks",
        "threads": 3,
        "ended": 0,
        "made_in": "start_readers → start_pool",
        "fed_in": "main → feed_readers → futex",
        "on_cpu": 24 * SECOND // 10,
        "runnable": 24 * SECOND,
    }
    assert writers["threads"] == 2


def test_texts_are_printable_and_rows_bounded() -> None:
    made = no_pools()
    for i in range(3):
        add_pool(made, 2, name=f"{HOSTILE}{i}-{{}}", made_in=(HOSTILE, *READERS), runs=HOSTILE)
    rows = pools_data(facts_of(made), 2)
    assert len(rows) == 2
    text = json.dumps(rows, ensure_ascii=False)
    assert text == printable(text)
