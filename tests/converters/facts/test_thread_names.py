"""Names of threads that are alike."""

from __future__ import annotations

import pytest
from stallscope.converters.facts.thread_names import name_pattern, thread_pattern


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("pool-17", "pool-*"), ("cuda00001", "cuda*"), ("rank_3", "rank_*"), ("python3", "python3"), ("x", "x"), ("", "")],
)
def test_numbers_at_the_end_are_left_out(name: str, pattern: str) -> None:
    assert thread_pattern(name, main=False) == name_pattern(name) == pattern
    assert thread_pattern(name, main=True) == "main"


def test_a_thread_that_is_called_main_is_no_main_thread() -> None:
    assert thread_pattern("main", main=False) == '"main"'
    assert thread_pattern("main-2", main=False) == "main-*"
    assert name_pattern("main") == "main"
