"""Verdicts that are worth as much as others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from stallscope.converters.facts.wait_sums import Place
from stallscope.converters.facts.waits import wait_of
from stallscope.converters.model.sites import Site
from stallscope.converters.rules import busy, deadlock, gil_main, held_up, idle, quota
from stallscope.converters.rules.finding import Finding
from stallscope.converters.rules.near import as_much
from stallscope.converters.rules.ranking import judge
from stallscope.converters.rules.verdict import Verdict
from stallscope.converters.summary.summarize import summarize
from summary_profiles import MS, SECOND, facts_of
from verdict_profiles import FSYNC, blocked, deadlocked, with_quota


def test_both_are_told_one_after_the_other() -> None:
    profile = with_quota(blocked(9 * SECOND, MS), 8_800_000_000)
    first, second = summarize(profile).answer
    assert "→ fsync, waiting in folio_wait_bit" in first
    assert second.startswith("About as much: A quota throttles stopped: ")


def test_one_that_is_clearly_lesser_is_told_as_the_second() -> None:
    profile = with_quota(blocked(9 * SECOND, MS), 8 * SECOND)
    _, second = summarize(profile).answer
    assert second.startswith("A quota throttles stopped: ")
    assert not judge(facts_of(profile)).is_equal


def test_a_deadlock_has_no_equal() -> None:
    assert not judge(facts_of(with_quota(deadlocked(), 10 * SECOND))).is_equal


def place(name: str = "fsync") -> Place:
    return Place("interruptible", Site(("main", name), "x"), wait_of(FSYNC, "uninterruptible"))


def finding(thread: int = 1, *, kind: str = "held", at: str = "fsync", count: int = 100) -> Finding:
    return Finding(kind, ((thread, thread),), 100, 1000, (place(at),), count)


def verdict(of: Finding | None, time: int = 1000, rule: str = held_up.RULE, **more: Any) -> Verdict:
    pids = of.pids if of else frozenset({1})
    return replace(Verdict(rule, "io", time, 1, pids, of), **more)


FIRST = verdict(finding())
OTHER = verdict(finding(2, at="read"), 950)


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (FIRST, OTHER),
        (FIRST, replace(OTHER, time=875)),  # hypot(100, 87.5) is more than the rest
        (FIRST, verdict(finding(1, at="read"), 950)),  # the same thread elsewhere
        (FIRST, verdict(finding(2), 950)),  # another thread in the same place
        (FIRST, verdict(finding(1, kind="sleep"), 950)),
        (replace(FIRST, is_effect=True), replace(OTHER, is_effect=True)),
        (replace(FIRST, is_effect=True), verdict(finding(1, at="read"), 950, is_effect=True)),
        (replace(FIRST, is_effect=True, cause=finding(3)), OTHER),
        (FIRST, replace(OTHER, most=10_000.0)),
        (verdict(finding(count=10**6)), verdict(finding(2, count=10**6), 975)),
        (verdict(None, rule=quota.RULE), replace(verdict(None, 980, quota.RULE), pids=frozenset({2}))),
    ],
)
def test_as_much(first: Verdict, other: Verdict) -> None:
    lesser = verdict(finding(9, at="x"), 1)
    assert as_much(first, [lesser, other]) is other


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (FIRST, replace(OTHER, time=850)),
        (FIRST, replace(OTHER, confidence=0.5)),
        (FIRST, verdict(finding(), 950)),  # the same
        (FIRST, replace(OTHER, most=940.0)),  # it is explained
        (FIRST, verdict(finding(1, at="read"), 950, is_effect=True)),  # in its process
        (replace(FIRST, cause=finding(2, at="x")), OTHER),  # its sentence tells of it
        (replace(FIRST, effect=finding(2, at="x")), OTHER),
        (FIRST, replace(OTHER, cause=finding(1, at="x"))),
        (FIRST, replace(OTHER, rule=idle.RULE)),
        (replace(FIRST, rule=gil_main.RULE), OTHER),
        (replace(FIRST, rule=deadlock.RULE), OTHER),
        (verdict(finding(count=10**6)), verdict(finding(2, count=10**6), 970)),
        (verdict(None, rule=busy.RULE), verdict(None, 990, quota.RULE)),
        (verdict(Finding("cpu", ((1, 1),), 1, 2)), verdict(Finding("cpu", ((1, 1),), 1, 2), 990)),
    ],
)
def test_not_as_much(first: Verdict, other: Verdict) -> None:
    assert as_much(first, [other]) is None


def test_few_samples_are_less_sure() -> None:
    """Samples count, 25 of them, not the 100 waits that they show."""
    few, many = (replace(finding(), samples=number) for number in (25, 10_000))
    other = verdict(replace(finding(2), samples=10_000), 920)
    assert as_much(verdict(few), [other]) is other
    assert as_much(verdict(many), [other]) is None
