from __future__ import annotations

from processes import SECOND, crowd, process, profile, threads
from stallscope.converters.facts.contention import contention_of
from stallscope.converters.facts.groups import alike_of, by_name, users_of_cores
from stallscope.converters.model import ThreadTimes
from stallscope.converters.model.neighbours import Neighbour


def thread(pid: int, tid: int, name: str, number: int = 1) -> ThreadTimes:
    return ThreadTimes(pid, "train", tid, name, 0, 0, 0, {}, count=number)


def test_numbered_threads_are_alike() -> None:
    assert alike_of([thread(1, 2, "pool-1"), thread(1, 3, "pool-2"), thread(1, 1, "x")]) == {
        ("train", "pool-*"): 2,
        ("train", "main"): 1,
    }


def test_threads_that_are_added_up_count_as_many() -> None:
    assert alike_of([thread(1, 2, "pool-1"), thread(1, 3, "pool-2", 40)]) == {("train", "pool-*"): 41}


def test_processes_of_one_name() -> None:
    (train,) = by_name(contention_of(crowd(3)))
    assert (train.process, train.pids, train.processes) == ("train", (1000, 2000, 3000), 3)


def test_processes_whose_names_differ_in_a_final_number() -> None:
    made = profile()
    for pid, name in ((1, "other"), (2, "rank-0"), (3, "rank-1"), (4, "rank")):
        process(made, pid, name)
        threads(made, pid, name, "x", on_cpu=SECOND)
    assert [(each.process, each.pids) for each in by_name(contention_of(made))] == [
        ("other", (1,)),
        ("rank-*", (2, 3)),
        ("rank", (4,)),
    ]
    assert by_name([]) == []


def test_processes_that_were_not_traced() -> None:
    made = [Neighbour(name, pid, SECOND) for pid, name in enumerate(("gzip", "cc1", "rank-1", "cc1", "rank-2", "cc1"))]
    assert users_of_cores(made, 2 * SECOND) == [("3 × cc1", 1.5), ("2 × rank-*", 1.0), ("gzip", 0.5)]
    assert users_of_cores(made[:1], 0) == [("gzip", 0.0)]
    assert users_of_cores([*made[:1], Neighbour("gzip", 9, 0)], SECOND) == [("gzip", 1.0)], "it only ended waits"
    assert users_of_cores([], SECOND) == []
    pinned = Neighbour("gzip", 1, 3 * SECOND, "0"), Neighbour("cc1", 2, 3 * SECOND, "0-2"), Neighbour("xz", 3, SECOND)
    assert users_of_cores(pinned, SECOND, frozenset((1, 2))) == [("cc1", 2.0), ("xz", 1.0), ("gzip", 0.0)]
