from __future__ import annotations

import pytest
from stallscope.converters.model import ThreadTimes
from stallscope.converters.summary.figures import Who
from stallscope.converters.summary.thread_groups import groups_text, who_of


def thread(pid: int, tid: int, name: str) -> ThreadTimes:
    return ThreadTimes(pid, "train", tid, name, 0, 0, 0, {})


def test_names_and_numbers() -> None:
    threads = [thread(1, 2, "pool-1"), thread(1, 3, "pool-1"), thread(4, 5, "pool-1"), thread(1, 1, "train")]
    assert who_of(threads) == (Who("train", "pool-1", False, 2, 3, (2, 3, 5)), Who("train", "train", True, 1, 1, (1,)))


def test_few_ids_are_told() -> None:
    (many,) = who_of([thread(1, tid, "pool") for tid in range(100, 2, -1)])
    assert (many.threads, many.tids) == (98, (3, 4, 5, 6))


@pytest.mark.parametrize(
    ("who", "expected"),
    [
        ([Who("demo", "worker", False, 8, 8)], "8 × demo/worker"),
        ([Who("demo", "demo", True, 1, 1)], "demo (main)"),
        ([Who("srv", f"pool-{i}", False, 1, 1) for i in range(3)] + [Who("srv", "srv", True, 1, 1)],
         "3 × srv/pool-*, srv (main)"),
        ([Who(name, name, True, 1, 1) for name in "abcde"], "a (main), b (main), c (main) and 2 more names"),
        ([Who(name, name, True, 1, 1) for name in "abcd"], "a (main), b (main), c (main), d (main)"),
    ],
)  # fmt: skip
def test_people(who: list[Who], expected: str) -> None:
    assert groups_text(who) == expected


def test_people_are_told_apart() -> None:
    two = [Who("srv", "pool-1", False, 1, 1, (9,)), Who("srv", "pool-2", False, 1, 1, (8,))]
    assert groups_text(two, apart=True) == "2 × srv/pool-* 8, 9"
    assert groups_text([Who("srv", "pool", False, 1, 3, (7, 8, 9))], apart=True) == "3 × srv/pool"


def test_nobody_knows_whose_time_was_lost() -> None:
    assert groups_text([Who("[lost]", "[lost]", True, 1, 1, (0,))]) == "not known whose"
