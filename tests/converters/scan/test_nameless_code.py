from __future__ import annotations

from stallscope.converters.facts import thresholds
from stallscope.converters.model import Frame, Module, Profile
from stallscope.converters.scan.nameless_code import sentences
from stallscope.converters.scan.report import report_of
from summary_profiles import facts_of
from verdict_profiles import COMPUTE, sampled

JIT = (*COMPUTE[:2], Frame("[anon]", "native", Module("[anon]")))


def of(nameless: int, named: int) -> Profile:
    return sampled(JIT, COMPUTE, samples=(nameless, named))


def told(profile: Profile, more: int = 0) -> list[str]:
    facts = facts_of(profile)
    (pid,) = {pid for pid, _ in facts.runs}
    return sentences(facts, (pid + more,))


def test_what_would_name_code_is_told() -> None:
    (sentence,) = told(of(60, 40))
    assert sentence.startswith("60.0 % of the samples of train are in code that was made at run time")
    assert "/tmp/perf-PID.map" in sentence
    assert sentence in report_of(of(60, 40)).findings


def test_it_is_not_told_of_little_or_of_others() -> None:
    assert told(of(40, 60)) == []
    assert told(of(60, 40), more=1) == []
    few = int(thresholds.FEW_SAMPLES) - 1
    assert told(of(few, 0)) == []
