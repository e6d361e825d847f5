"""Jobs that are recorded, and what is said of the others."""

from __future__ import annotations

import pytest
import record_jobs
from job import Job, Truth
from stage import PYTHON, Failed, Stage


def _fails(stage: Stage) -> list[int]:
    raise Failed("the port is taken")


TRUTH = Truth(("io",), ("x",))
LACKS = Job("lacks", TRUTH, _fails, {"no-such-program": "some-package"}, {"no_such_module": "python3-some"})
FAILS = Job("fails", TRUTH, _fails, {PYTHON: "python3"}, {"json": "python3"})


def test_what_is_missing_is_told_with_its_package() -> None:
    assert record_jobs.missing(LACKS) == ["python3-some", "some-package"]
    assert record_jobs.missing(FAILS) == []


def test_each_job_that_is_not_recorded_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(record_jobs, "JOBS", (LACKS, FAILS))
    assert record_jobs.main([]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "lacks: not recorded: apt-get install python3-some some-package",
        "fails: the port is taken",
    ]


def test_a_name_that_is_no_job_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(record_jobs, "JOBS", (LACKS,))
    assert record_jobs.main(["other"]) == 1
    assert capsys.readouterr().out.splitlines() == ["other: no such job"]
