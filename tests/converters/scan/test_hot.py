from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from stallscope.converters.facts import thresholds
from stallscope.converters.facts.hot_sites import HotSite
from stallscope.converters.facts.runs import Run, RunSum
from stallscope.converters.scan.hot import NOTHING, Hot, hot_of, together
from stallscope.converters.scan.process_verdicts import process_verdicts
from summary_profiles import facts_of
from verdict_profiles import COMPUTE, SWAP_IN, blocked, sampled

TRAIN, SAVE = ("main", "train"), ("main", "save")


def test_functions_with_their_samples() -> None:
    facts = facts_of(sampled(COMPUTE, SWAP_IN, samples=(30, 70)))
    (pid,) = {pid for pid, _ in facts.runs}
    hot = hot_of(facts, (pid,))
    assert hot.samples == 100
    assert [number for _, number in hot.places] == [70, 30]
    assert hot_of(facts, (pid + 1,)) == NOTHING


def test_few_samples_tell_nothing() -> None:
    enough = int(thresholds.FEW_SAMPLES)
    assert Hot(enough, ((TRAIN, enough),)).told == [(TRAIN, enough)]
    assert Hot(enough - 1, ((TRAIN, enough - 1),)).told == []


def test_what_is_rare_is_not_told() -> None:
    least = round(100 * thresholds.TELLING)
    assert Hot(100, ((TRAIN, 100 - least), (SAVE, least))).told == [(TRAIN, 100 - least), (SAVE, least)]
    assert Hot(100, ((TRAIN, 101 - least), (SAVE, least - 1))).told == [(TRAIN, 101 - least)]


def test_not_all_are_told() -> None:
    hot = Hot(90, tuple((("f", str(i)), 30) for i in range(3)))
    assert len(hot.told) == thresholds.HOT_NAMED


def test_those_of_several_processes() -> None:
    both = together([Hot(30, ((TRAIN, 30),)), Hot(50, ((SAVE, 40), (TRAIN, 10)))])
    assert both == Hot(80, ((SAVE, 40), (TRAIN, 40)))


def test_places_that_are_told_alike_are_added_up() -> None:
    """One place hides the function in which the other one ends."""
    hidden, plain = (Run(HotSite(frames, False), "") for frames in (TRAIN, (*TRAIN, "…", "matmul")))
    sums = {hidden: RunSum(samples=40, inner={(*TRAIN, "matmul"): 40}), plain: RunSum(samples=50)}
    facts: Any = SimpleNamespace(runs={(1, 1): sums})
    assert hot_of(facts, (1,)).places == (((*TRAIN, "…", "matmul"), 90),)


def test_a_row_on_a_wait_has_none() -> None:
    (row,) = process_verdicts(facts_of(blocked(9 * 10**9)))
    assert row.frames == ("main", "save", "fsync")
    assert row.hot == NOTHING
