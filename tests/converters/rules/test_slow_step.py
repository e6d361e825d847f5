from __future__ import annotations

from dataclasses import replace

from stallscope.converters.model.steps import Spent
from stallscope.converters.rules.ranking import judge
from stallscope.converters.rules.slow_step import find
from stallscope.converters.summary.summarize import summarize
from summary_profiles import MS, facts_of
from verdict_profiles import stepping


def test_what_slow_steps_take_more_than_others() -> None:
    profile = stepping()
    (verdict,) = find(facts_of(profile))
    assert (verdict.rule, verdict.kind, verdict.pids, verdict.confidence) == ("slow-step", "slow-step", {1}, 1)
    assert verdict.time == 50 * MS - 5 * (MS // 2)
    assert verdict.detail is profile.steps[0]


def test_steps_that_are_alike() -> None:
    profile = stepping()
    profile.steps[0] = replace(profile.steps[0], slow=None)
    assert find(facts_of(profile)) == []


def test_it_comes_first() -> None:
    """The user asked for steps. What is most important otherwise is told after it."""
    profile = stepping()
    judgement = judge(facts_of(profile))
    assert [verdict.rule for verdict in judgement.steps] == ["slow-step"]
    assert judgement.first and judgement.first.rule == "for-others"
    summary = summarize(profile)
    assert summary.answer[0].startswith("Every 20th step of demo:train_step (number 3, 23, …) takes 10.0 ms")
    assert summary.judged.verdicts[0].rule == "slow-step"


def test_what_is_told_of_irregular_ones() -> None:
    profile = stepping(every=None)
    slow = profile.steps[0].slow
    assert slow
    profile.steps[0] = replace(profile.steps[0], slow=replace(slow, spent=Spent(1, 10 * MS, MS, 9 * MS)))
    assert (
        summarize(profile).answer[0].startswith("1 of the steps of demo:train_step takes more than 3 times the median")
    )
