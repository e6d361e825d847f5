"""Judgement of a profile, without its tables."""

from __future__ import annotations

from stallscope.converters.summary.judging import judgement_of, read
from stallscope.converters.summary.summarize import summarize
from summary_profiles import idle_pool, model_case


def test_it_is_what_the_summary_tells() -> None:
    for profile in (model_case(), idle_pool()):
        facts, judgement = judgement_of(profile)
        judged = summarize(profile).judged
        assert judged
        assert judged.verdicts == (*judgement.verdicts, *judgement.still)
        assert list(facts.threads) == [(times.pid, times.tid) for times in profile.threads]


def test_without_waits_there_is_no_who_blocks_whom() -> None:
    found = read(model_case())
    assert found.facts.recorded is None
    assert found.before == {}
