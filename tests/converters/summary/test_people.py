from __future__ import annotations

from stallscope.converters.model import ThreadTimes
from stallscope.converters.summary.figures import Who
from stallscope.converters.summary.people import alike_of, who_of


def thread(pid: int, tid: int, name: str) -> ThreadTimes:
    return ThreadTimes(pid, "train", tid, name, 0, 0, 0, {})


def test_names_and_numbers() -> None:
    threads = [thread(1, 2, "pool-1"), thread(1, 3, "pool-1"), thread(4, 5, "pool-1"), thread(1, 1, "train")]
    assert who_of(threads) == (Who("train", "pool-1", False, 2, 3, (2, 3, 5)), Who("train", "train", True, 1, 1, (1,)))


def test_numbered_threads_are_alike() -> None:
    assert alike_of([thread(1, 2, "pool-1"), thread(1, 3, "pool-2"), thread(1, 1, "x")]) == {
        ("train", "pool-*"): 2,
        ("train", "main"): 1,
    }


def test_few_ids_are_told() -> None:
    (many,) = who_of([thread(1, tid, "pool") for tid in range(100, 2, -1)])
    assert (many.threads, many.tids) == (98, (3, 4, 5, 6))
