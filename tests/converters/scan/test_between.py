"""Tests of who waits for whom across processes."""

from __future__ import annotations

import pytest
from stallscope.converters.facts import thresholds
from stallscope.converters.scan.between import Between, between, between_table, is_told, told
from stallscope.converters.summary.terminal import printed
from stallscope.converters.summary.waits_for import Blocking, Named

NODES = (
    Named("process", "train", "", 1, 0, True, 0, 0),
    Named("process", "train", "", 2, 0, True, 0, 0),
    Named("process", "feed", "", 9, 0, True, 0, 0),
    Named("device", "[interrupt nvme]", "", 0, 0, False, 0, 0),
)


def blocking(ends: dict[tuple[int, int], int], by: str = "process") -> Blocking:
    return Blocking(by, 1_000, 0, NODES, ends)


def test_processes_of_one_name_are_one() -> None:
    ends = {(0, 2): 300, (1, 2): 100, (1, 0): 50, (2, 3): 400, (2, 2): 90}
    assert between(blocking(ends)) == [
        Between("train", (1, 2), "feed", (9,), 400),
        Between("train", (2,), "train", (1,), 50),
    ]


@pytest.mark.parametrize("found", [None, blocking({(0, 2): 300}, by="thread")])
def test_of_threads_of_one_process_there_is_nothing(found: Blocking | None) -> None:
    assert between(found) == []


def pairs(*times: int) -> list[Between]:
    return [Between(f"a{i}", (i,), "b", (9,), time) for i, time in enumerate(times)]


def test_few_that_matter_are_told() -> None:
    assert told(pairs(100, 99), 1_000, 100) == pairs(100)
    assert told(pairs(100, 99), 500, 2_000) == pairs(100), "for 5 % of the trace at least"
    assert len(told(pairs(500, 400, 300, 200), 1_000, 100)) == thresholds.BETWEEN_ROWS


def test_what_a_row_tells() -> None:
    (pair,) = pairs(100)
    assert is_told(pair, (0, 5), (8, 9))
    assert not is_told(pair, (5,), (9,))
    assert not is_told(pair, (0,), (8,))


def test_the_table_with_hostile_names() -> None:
    rows = [Between("a\x1b[2J", (1, 2), "b\udcff", (9,), 400_000_000)]
    text = printed([between_table(rows, 1_000_000_000)], 120, False)
    assert "400 ms  40.0 %  2 × a\\x1b[2J (pid 1, 2) → b\\xff (pid 9)" in text
