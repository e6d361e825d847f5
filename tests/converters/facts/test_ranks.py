from __future__ import annotations

from dataclasses import replace

import pytest
from collective_profiles import of_ranks, rank
from stallscope.converters.facts.ranks import in_words, named, numbers, ranks_of, who
from stallscope.converters.model import Profile
from stallscope.converters.model.collectives import UNKNOWN
from stallscope.converters.model.processes import ProcessTimes


def test_ranks_by_pid() -> None:
    processes = [
        ProcessTimes(7, "train", ranks={"rank": "3", "gpu": "3"}),
        ProcessTimes(8, "train", ranks={"gpu": "1"}),
        ProcessTimes(9, "train", ranks={"rank": "x"}),
        ProcessTimes(10, "bash"),
    ]
    assert ranks_of(Profile([], processes=processes)) == {7: 3}


def test_numbers_of_processes_of_which_only_a_communicator_tells() -> None:
    pair = of_ranks(*(replace(rank(number), pid=12 + number) for number in (0, 1)))
    whole = of_ranks(*map(rank, range(4)), replace(rank(UNKNOWN), pid=20))
    assert numbers({}, [whole, pair]) == {10: 0, 11: 1, 12: 2, 13: 3}, "those in the largest one"
    assert numbers({10: 8, 30: 9}, [pair, whole]) == {10: 8, 11: 1, 12: 2, 13: 3, 30: 9}
    assert numbers({}, []) == {}


def test_in_words() -> None:
    assert [in_words(each) for each in ((3,), {2, 0, 1}, (4, 2))] == ["rank 3", "ranks 0-2", "ranks 2, 4"]


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
