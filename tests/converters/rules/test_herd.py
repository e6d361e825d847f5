from __future__ import annotations

from types import SimpleNamespace

import pytest
from stallscope.converters.facts.teams import Team
from stallscope.converters.model import Profile
from stallscope.converters.rules.herd import find
from summary_profiles import MS, POOL, READ, SECOND, Tracee, empty, facts_of
from verdict_profiles import herd


def test_threads_that_are_woken_in_vain() -> None:
    (verdict,) = find(facts_of(herd()))
    assert (verdict.rule, verdict.kind, verdict.confidence, verdict.pids) == ("herd", "herd", 1, {1})
    assert verdict.time == 8 * (10 * SECOND - 100 * MS)
    assert verdict.finding
    assert (verdict.finding.kind, len(verdict.finding.threads), verdict.finding.count) == ("thread", 8, 80_000)


@pytest.mark.parametrize(
    "profile",
    [
        herd(7),
        herd(often=99),
        herd(runs=20_001),  # they find something to do
        herd(last=0.6),  # one is woken less often than the others
    ],
)
def test_no_herd(profile: Profile) -> None:
    assert find(facts_of(profile)) == []


def test_a_team_is_no_herd() -> None:
    """Each thread of a team has a part of the work for which all are woken."""
    facts = facts_of(herd())
    tids = [tid for pid, tid in facts.own if pid != tid]
    facts.whole = SimpleNamespace(once=lambda _: (Team(1, "conv2d", "libgomp", frozenset(tids), 9),))  # type: ignore[assignment]
    assert find(facts) == []
    facts = facts_of(herd())
    few = frozenset(tids[: len(tids) // 2 - 1])
    facts.whole = SimpleNamespace(once=lambda _: (Team(1, "conv2d", "libgomp", few, 9),))  # type: ignore[assignment]
    assert find(facts)


def test_threads_of_several_names_or_with_another_end_are_no_herd() -> None:
    profile = herd()
    for times in profile.threads:
        times.thread = f"w{chr(times.tid + 95)}"
    assert find(facts_of(profile)) == []
    profile = herd()
    profile.samples = [sample._replace(stack=READ) for sample in profile.samples]
    assert find(facts_of(profile)) == []


@pytest.mark.parametrize(("threads", "found"), [(8, 0), (9, 1)])
def test_who_hardly_waits_there_is_none_of_the_herd(threads: int, found: int) -> None:
    profile = herd(threads)
    profile.threads[-1].wall *= 21
    assert len(find(facts_of(profile))) == found


def test_main_threads_are_no_herd() -> None:
    profile = empty()
    for pid in range(1, 9):
        Tracee(profile, pid, "app", pid, "app").wait(POOL, "interruptible", 10 * SECOND, 10_000)
    assert find(facts_of(profile)) == []


def test_the_one_with_the_longest_waits() -> None:
    profile = herd()
    for tid in range(100, 120):
        Tracee(profile, 7, "more", tid, "w").wait(POOL, "interruptible", 10 * SECOND, 10_000)
    (verdict,) = find(facts_of(profile))
    assert (verdict.pids, verdict.time) == ({7}, 200 * SECOND)
