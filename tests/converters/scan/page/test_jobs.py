from __future__ import annotations

import json

import pytest
from job_profiles import job, late
from stallscope.converters.scan.jobs import Jobs, jobs_report
from stallscope.converters.scan.page.jobs import jobs_data
from summary_profiles import facts_of


def test_a_row_for_each_rank_and_a_column_for_each_kind() -> None:
    data = jobs_data(jobs_report(facts_of(late())))
    (found,) = data["jobs"]
    assert [kind for kind, _, _ in found["kinds"]] == ["running", "runnable", "collective", "sleep"]
    first = found["ranks"][0]
    assert (first["name"], first["outlier"]) == ("rank 3 (pid 103, GPU 3)", True)
    assert first["shares"] == pytest.approx([0, 0, 0.2, 0.8])
    assert found["medians"] == pytest.approx([0, 0, 0.9, 0.1])
    assert len(found["ranks"]) == 8
    assert json.dumps(data)


def test_no_job() -> None:
    assert jobs_data(Jobs()) == {"jobs": [], "gpus": []}
    assert len(jobs_data(jobs_report(facts_of(job(0.1, 0.1))))["jobs"]) == 1
