from __future__ import annotations

from dataclasses import replace

import pytest
from collective_profiles import of_ranks, rank
from processes import HALF, process, profile, threads
from stallscope.converters.model import Profile
from stallscope.converters.model.processes import CpuLimit
from stallscope.converters.rules.quota import Throttled, find, throttles
from summary_profiles import SECOND, empty, facts_of
from verdict_profiles import with_quota

TRACE = 10 * SECOND


def limited(*limits: CpuLimit, runnable: int = 0) -> Profile:
    """Two processes of one program in these groups."""
    made = profile()
    for pid in (10, 20):
        process(made, pid, "demo", limits=limits)
        threads(made, pid, "demo", "demo", on_cpu=SECOND, runnable=runnable)
    return made


def test_a_quota_that_stops_threads() -> None:
    (verdict,) = find(facts_of(limited(HALF)))
    assert (verdict.rule, verdict.kind, verdict.time, verdict.confidence) == ("quota", "quota", HALF.throttled_ns, 1)
    assert (verdict.pids, verdict.finding) == ({10, 20}, None)
    assert isinstance(verdict.detail, Throttled)
    assert verdict.detail.limit == HALF
    assert [(group.process, group.processes) for group in verdict.detail.groups] == [("demo", 2)]


def test_all_ranks_stand_still_with_the_one_that_is_stopped() -> None:
    made = limited(HALF)
    made.collectives = [of_ranks(*(replace(rank(number), pid=10 * number) for number in (1, 2, 3, 4)))]
    (verdict,) = find(facts_of(made))
    assert isinstance(verdict.detail, Throttled)
    assert (verdict.time, verdict.detail.ranks) == (2 * HALF.throttled_ns, (1, 2))
    made.collectives = [of_ranks(*(replace(rank(number), pid=10 * number) for number in (1, 2)))]
    (verdict,) = find(facts_of(made))
    assert verdict.time == HALF.throttled_ns, "all of them are stopped"
    made.collectives = [of_ranks(*(replace(rank(number), pid=10 * number) for number in (1, 3)))]
    (verdict,) = find(facts_of(made))
    assert isinstance(verdict.detail, Throttled)
    assert (verdict.time, verdict.detail.ranks) == (HALF.throttled_ns, ()), "one that is stopped is no rank"


def test_others_of_the_same_name_are_in_another_group() -> None:
    made = limited(HALF)
    process(made, 30, "demo", limits=(replace(HALF, cgroup="/free", throttled_periods=0, throttled_ns=0),))
    process(made, 31, "demo")
    for pid in (30, 31):
        threads(made, pid, "demo", "demo", on_cpu=SECOND)
    (verdict,) = find(facts_of(made))
    assert verdict.pids == {10, 20}
    assert isinstance(verdict.detail, Throttled)
    assert [(group.process, group.processes) for group in verdict.detail.groups] == [("demo", 2)]


def test_threads_may_wait_for_longer_than_their_group_was_stopped() -> None:
    (verdict,) = find(facts_of(limited(HALF, runnable=4 * SECOND)))
    assert verdict.time == 8 * SECOND


def test_the_one_that_stopped_threads_for_longest_comes_first() -> None:
    inner = replace(HALF, cgroup="/half/inner", throttled_ns=HALF.throttled_ns + 1)
    details = [verdict.detail for verdict in find(facts_of(limited(HALF, inner)))]
    assert [each.limit.cgroup for each in details if isinstance(each, Throttled)] == ["/half/inner", "/half"]


@pytest.mark.parametrize(
    ("periods", "throttled", "ns", "trace", "does"),
    [
        (100, 2, 0, TRACE, True),
        (100, 1, TRACE // 50, TRACE, False),
        (0, 0, TRACE // 50 + 1, TRACE, True),
        (0, 0, TRACE, 0, False),  # the length of the trace is not known
        (0, 0, 0, TRACE, False),
    ],
)
def test_a_quota_that_matters(periods: int, throttled: int, ns: int, trace: int, does: bool) -> None:
    assert throttles(CpuLimit("/x", 50_000, 100_000, periods, throttled, ns), trace) is does


@pytest.mark.parametrize(
    "made",
    [
        limited(replace(HALF, throttled_periods=1, throttled_ns=TRACE // 50)),  # seldom
        limited(),
        with_quota(limited(), SECOND // 50),  # next to what all others ran for, it is nothing
        empty(),
    ],
)
def test_no_quota(made: Profile) -> None:
    assert find(facts_of(made)) == []
