"""Values that the ranks of a job have in common. More: tests/converters/facts/test_jobs.py."""

from __future__ import annotations

from stallscope.converters.facts.job_identity import differ, identities
from stallscope.converters.model.origins import ProcessOrigin


def of(**variables: str) -> ProcessOrigin:
    return ProcessOrigin(10, "train", variables=variables)


def test_what_tells_a_job() -> None:
    assert identities(None) == identities(of(MASTER_ADDR="host")) == []
    assert identities(of(MASTER_ADDR="host", MASTER_PORT="1")) == [("MASTER_ADDR", "MASTER_PORT", "host", "1")]


def test_what_tells_them_apart() -> None:
    assert differ([of(PMI_JOBID="1"), of(PMI_JOBID="2")])
    assert not differ([of(PMI_JOBID="1"), of(PMI_JOBID="1"), of()])
    assert not differ([of(PMI_JOBID="1"), of(PMIX_NAMESPACE="2")])
