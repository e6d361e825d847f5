from __future__ import annotations

import pytest
from stallscope.converters.facts.ranks import named, ranks_of, who
from stallscope.converters.model import Profile
from stallscope.converters.model.processes import ProcessTimes


def test_ranks_by_pid() -> None:
    processes = [
        ProcessTimes(7, "train", ranks={"rank": "3", "gpu": "3"}),
        ProcessTimes(8, "train", ranks={"gpu": "1"}),
        ProcessTimes(9, "train", ranks={"rank": "x"}),
        ProcessTimes(10, "bash"),
    ]
    assert ranks_of(Profile([], processes=processes)) == {7: 3}


def test_who() -> None:
    assert who("train", 7, {7: 3}) == "rank 3 (pid 7)"
    assert who("train", 8, {7: 3}) == "train (8)"
    assert who("train", 8 | 1 << 32, {8 | 1 << 32: 3}) == "rank 3 (pid 8 (second))"


@pytest.mark.parametrize(
    ("pids", "text"),
    [
        ((10,), "rank 0"),
        ((10, 12), "ranks 0, 2"),
        ((11, 12), "ranks 1, 2"),
        ((11, 12, 13, 17), "ranks 1-3, 7"),
        ((10, 99), ""),
        ((), ""),
    ],
)
def test_names_of_several_ranks(pids: tuple[int, ...], text: str) -> None:
    assert named(pids, {10 + rank: rank for rank in range(8)}) == text
