from __future__ import annotations

from dataclasses import replace

import pytest
from stallscope.converters.facts.gil import GilShare
from stallscope.converters.model import Profile
from stallscope.converters.model.gil import GilThread
from stallscope.converters.rules.gil_main import find, main_of
from summary_profiles import SECOND, empty, facts_of
from verdict_profiles import held_by_gil


def waited_by(tid: int) -> Profile:
    """Profile in which one thread alone waits."""
    made = held_by_gil()
    made.gil = [replace(made.gil[0], waiters=[GilThread("x", tid, 9 * SECOND, 1)])]
    return made


def test_a_main_thread_that_waits_for_most_of_its_time() -> None:
    (verdict,) = find(facts_of(held_by_gil()))
    assert (verdict.rule, verdict.kind, verdict.time, verdict.confidence) == ("gil-main", "gil", 6 * SECOND, 1)
    assert (verdict.pids, verdict.finding) == ({7}, None)
    assert isinstance(verdict.detail, GilShare)
    assert (verdict.detail.process, verdict.detail.main) == ("train.py", 10 * SECOND)
    assert main_of(verdict.detail.gil) == GilThread("python3", 7, 6 * SECOND, 9)


def test_the_one_that_waits_longest() -> None:
    made = held_by_gil(8 * SECOND, to=held_by_gil())
    made.gil[1] = replace(made.gil[1], pid=70, waiters=[GilThread("x", 70, 8 * SECOND, 1)])
    made.threads += [replace(times, pid=70, tid=times.tid + 63) for times in made.threads[:2]]
    assert [(verdict.pids, verdict.time) for verdict in find(facts_of(made))] == [({70}, 8 * SECOND)]


def test_waits_of_a_main_thread_whose_time_is_not_known() -> None:
    made = held_by_gil()
    made.threads = made.threads[1:]
    assert find(facts_of(made)) == []


@pytest.mark.parametrize(
    "made",
    [
        held_by_gil(5 * SECOND - 1),
        waited_by(8),  # no main thread
        empty(),
    ],
)
def test_no_main_thread_is_held_up(made: Profile) -> None:
    assert find(facts_of(made)) == []
