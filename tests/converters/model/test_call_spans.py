from __future__ import annotations

import random

import numpy as np
from scheduling_traces import rows
from stallscope.converters.model.call_spans import cut_to_outer, of_threads, within
from stallscope.converters.model.scheduling import CALL, OPEN, THREAD, Array, CallName, Scheduling, Threads


def calls(*spans: tuple[int, int, int, int]) -> Array:
    """(thread, begin, end, level)."""
    tids, begins, ends, levels = zip(*spans, strict=True)
    return rows(CALL, tid=tids, begin=begins, end=ends, level=levels)


def plain(found: Array) -> list[tuple[int, int, int, int]]:
    return [(int(row["tid"]), int(row["begin"]), int(row["end"]), int(row["level"])) for row in found]


def test_within_a_time() -> None:
    given = calls((1, 10, 20, 0), (1, 15, 16, 1), (1, 30, 90, 0), (1, 95, OPEN, 0), (1, 40, 50, 1), (1, 30, 60, 1))
    assert plain(within(given, 18, 60)) == [(1, 10, 20, 0), (1, 30, OPEN, 0), (1, 30, 60, 1), (1, 40, 50, 1)]


def test_an_inner_call_ends_with_its_outer_one() -> None:
    given = calls((1, 10, 20, 0), (1, 12, 22, 1), (1, 13, 30, 8), (2, 12, 22, 1), (1, 20, 25, 1))
    cut_to_outer(given, given["tid"])
    assert plain(given) == [(1, 10, 20, 0), (1, 12, 20, 1), (1, 13, 20, 8), (2, 12, 22, 1), (1, 20, 25, 1)]


def test_calls_one_after_the_other_do_not_overlap() -> None:
    given = calls((1, 10, 21, 3), (1, 20, 30, 3), (2, 0, 100, 3))
    cut_to_outer(given, given["tid"])
    assert plain(given) == [(1, 10, 20, 3), (1, 20, 30, 3), (2, 0, 100, 3)]


def test_whatever_they_are_they_nest() -> None:
    choice = random.Random(5)
    for _ in range(300):
        number = choice.randrange(12)
        begins = [choice.randrange(20) for _ in range(number)]
        given = rows(
            CALL,
            tid=[choice.randrange(2) for _ in begins],
            begin=begins,
            end=[begin + choice.randrange(9) for begin in begins],
            level=[choice.choice((0, 1, 8)) for _ in begins],
        )
        cut_to_outer(given, given["tid"])
        for one in given:
            for other in given:
                if one["tid"] != other["tid"] or not one["begin"] < other["begin"] < one["end"]:
                    continue
                assert other["end"] <= one["end"] or other["level"] < one["level"], (one, other)


def test_of_traced_threads() -> None:
    given = calls((7, -5, 40, 0), (9, 0, 10, 0), (7, 50, OPEN, 0), (7, 60, OPEN, 8))
    scheduling = Scheduling(100, threads=rows(THREAD, tid=[7], tgid=[7]), calls=given, names=["one"])
    found, which = of_threads(scheduling, Threads(scheduling.threads))
    assert plain(found) == [(7, 0, 40, 0), (7, 50, 101, 0), (7, 60, 101, 8)], "101: after the recording"
    assert which.tolist() == [0, 0, 0]


def test_none() -> None:
    scheduling = Scheduling(100)
    found, which = of_threads(scheduling, Threads(scheduling.threads))
    assert len(found) == len(which) == 0


def test_losses_are_told() -> None:
    assert "spans of calls" not in Scheduling(1).lost()
    lost = Scheduling(1, calls=np.zeros(1, CALL), call_names=[CallName("f")], calls_dropped=3).lost()
    assert (lost["spans of calls"], lost["spans of calls beyond the limit"]) == (0, 3)
