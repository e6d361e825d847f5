"""Judgement of a profile, without its tables."""

from __future__ import annotations

from stallscope.converters.model.neighbours import Neighbour
from stallscope.converters.summary.judging import judgement_of, read
from stallscope.converters.summary.summarize import summarize
from summary_profiles import idle_pool, model_case
from verdict_profiles import ending_with_others


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


def test_who_ends_waits_has_the_name_of_its_script() -> None:
    made = ending_with_others()
    made.neighbours.append(Neighbour("exporter rates.py", 8, 0))
    found = read(made).facts.recorded
    assert found
    assert "exporter rates.py" in {process for process, _ in found.graph.names.values()}
    assert "ends with exporter rates.py (pid 8, not traced)" in " ".join(summarize(made).answer)
