"""Endpoints that are put together by their calls."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from stallscope.converters.collectives.fitting import Fitting, fitting
from stallscope.converters.collectives.meetings import OPEN, Calls, Member
from stallscope.converters.collectives.numbered import Number
from stallscope.converters.facts import thresholds

MS = 1_000_000
STEP = 1000 * MS


def endpoint(
    pid: int, late: int = 0, *, done: int = 901, begin: int = 0, calls: int = 10, what: int = 1, comm: int = 0
) -> Calls:
    """Calls ``late`` ms after the begin of steps of a second, which are ``done`` so many ms after it (0: not known)."""
    steps = np.arange(begin, begin + calls, dtype=np.int64) * STEP
    ends = steps + done * MS if done else np.full(calls, OPEN)
    return Calls(Member(pid, comm), steps + late * MS, ends, np.full(calls, what, np.int64), ends, np.ones(calls, bool))


def found(*calls: Calls, apart: frozenset[frozenset[int]] = frozenset()) -> list[list[int]]:
    """Groups of process ids, without those who are alone."""
    groups = fitting(calls, lambda one, other: frozenset((one, other)) in apart).groups
    assert sorted(place for group in groups for place in group) == list(range(len(calls)))
    return sorted([calls[place].member.pid for place in group] for group in groups if len(group) > 1)


JOB = endpoint(10), endpoint(11, 900)
BEHIND = endpoint(20, 50, done=951), endpoint(21, 950, done=951)
"""Another job, whose first rank fits those of `JOB`."""


def test_all_fit_each_other() -> None:
    assert found(*JOB) == [[10, 11]]
    assert found(*(endpoint(pid, pid) for pid in range(8))) == [list(range(8))]
    assert found(endpoint(10, done=100), endpoint(11, 200, done=300)) == []


def test_who_fits_two_that_do_not_fit_is_alone() -> None:
    assert found(*BEHIND) == [[20, 21]]
    assert found(*JOB, *BEHIND) == found(*BEHIND, *JOB) == [[10, 11]]
    first = endpoint(20, 50, done=920), endpoint(21, 910, done=920)
    assert found(endpoint(10), endpoint(11, 900), *first) == [[10, 11]]


def test_two_who_fit_the_same_two_may_be_of_either() -> None:
    """Both first ranks fit both last ones, which do not fit each other: nobody knows whose is whose."""
    early = endpoint(10, done=990), endpoint(20, done=990)
    late = endpoint(11, 100, done=200), endpoint(21, 300, done=400)
    assert found(*late) == []
    assert found(*early) == [[10, 20]]
    assert found(*early, *late) == []


def unsure(*calls: Calls) -> dict[tuple[int, ...], int]:
    """Ranks that may be of each group, too, by the processes of the group."""
    told = fitting(calls, lambda *_: False)
    return {
        tuple(calls[place].member.pid for place in group): told.unsure[group[0]]
        for group in told.groups
        if len(group) > 1
    }


def barriers(pid: int, comm: int, *begins: int, took: int = 10) -> Calls:
    """Barriers that begin at these ms, and are done ``took`` ms later."""
    began = np.array(begins, np.int64) * MS
    none = np.ones(len(began), bool)
    return Calls(Member(pid, comm), began, began + took * MS, np.ones(len(began), np.int64), began + took * MS, none)


def test_two_communicators_with_barriers_alone() -> None:
    """Ranks 10 and 11 call them in another order than rank 12, by two threads each. If the calls of one of rank 12's
    fit those of the other communicator, too, it is in no group, and ranks that are in one know that it may be."""
    ones = [barriers(pid, 1, 0, 100, 200, 300, 400) for pid in (10, 11)]
    others = [barriers(pid, 2, 50, 150, 250, 350, 450) for pid in (10, 11)]
    third = barriers(12, 1, 5, 105, 205, 305, 405), barriers(12, 2, 55, 155, 255, 355, 455)
    assert unsure(*ones, *others, *third) == {(10, 11, 12): 0}
    # It comes early to the first one, and waits until the second one has begun.
    early = barriers(12, 1, 0, 100, 200, 300, 400, took=60)
    assert unsure(*ones, *others, early, third[1]) == {(10, 11): 1}


def test_ranks_of_different_jobs() -> None:
    apart = frozenset(frozenset((one, other)) for one in (10, 11) for other in (20, 21))
    assert found(*JOB, *BEHIND, apart=apart) == [[10, 11], [20, 21]]


@pytest.mark.parametrize(
    ("numbers", "fit"), [((0, 2, 1, 2), True), ((0, 2, 0, 2), False), ((0, 2, 1, 3), False), ((0, 2), True)]
)
def test_ranks_that_are_known(numbers: tuple[int, ...], fit: bool) -> None:
    known = [Number(*numbers[:2]), Number(*numbers[2:]) if numbers[2:] else None]
    groups = fitting(JOB, lambda one, other: False, known).groups
    assert groups == ([[0, 1]] if fit else [[0], [1]])


def test_one_process_has_no_two_ranks() -> None:
    assert found(endpoint(10), endpoint(10, comm=1)) == []
    assert found(endpoint(10), endpoint(10, comm=1), endpoint(11)) == []


def test_what_fits_in_several_ways_joins_nobody() -> None:
    """Calls of two that are not known to be done may be with any of the other one."""
    unknown = endpoint(12, 10, done=0), endpoint(13, 20, done=0)
    assert found(*unknown) == []
    assert found(*JOB, *unknown) == [[10, 11]]


def test_calls_at_other_times_or_of_other_operations() -> None:
    assert found(endpoint(10), endpoint(11, begin=10)) == []
    assert found(endpoint(10), endpoint(11, what=2)) == []
    assert found(endpoint(10), endpoint(11, begin=6)) == [[10, 11]], "the last four are together"
    assert found(endpoint(10), endpoint(11, begin=7)) == []


def left_out(limit: str, number: int, monkeypatch: pytest.MonkeyPatch) -> Fitting:
    monkeypatch.setattr(thresholds, limit, number)
    return fitting([endpoint(10, calls=5), endpoint(11), endpoint(12)], lambda *_: False)


@pytest.mark.parametrize("limit", ["PAIRS_FIT", "COMMUNICATORS_FIT"])
def test_of_too_many_those_with_fewest_calls_are_left_out(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert left_out(limit, 3, monkeypatch) == ([[0, 1, 2]], frozenset(), {0: 0})
    assert left_out(limit, 2, monkeypatch) == ([[0], [1, 2]], {0}, {1: 0})


def test_many_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compares only those at the same time, of 500 one after the other."""
    pairs = []
    monkeypatch.setattr(
        "stallscope.converters.collectives.fitting.compared",
        lambda one, other: pairs.append((one.member.comm, other.member.comm)),
    )
    fitting(
        [endpoint(pid, begin=5 * comm, calls=5, comm=comm) for pid in (10, 11) for comm in range(500)], lambda *_: False
    )
    assert sorted(pairs) == [(comm, comm) for comm in range(500)]


def test_those_that_are_compared_with_none_take_no_memory() -> None:
    """A matrix of all would take 400 MB."""
    few = endpoint(12, calls=1)
    tracemalloc.start()
    try:
        assert found(*JOB, *[few] * 20_000) == [[10, 11]]
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()
