"""The tables of jobs and truths. See README.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from capture_truths import JOBS, TRUTHS
from job import KINDS, PREFIX, Job
from record import CAPTURES
from stage import PROGRAMS

HERE = Path(__file__).parent


def test_names_are_different() -> None:
    names = [job.capture(command) for job in JOBS for command in job.commands]
    assert len(names) == len(set(names))


def test_kinds_are_known() -> None:
    assert {kind for truth in TRUTHS.values() for kind in truth.kinds} <= set(KINDS)


def test_expressions_can_be_compiled() -> None:
    for name, truth in TRUTHS.items():
        assert truth.kinds, name
        assert truth.subject, name
        for pattern in (*truth.subject, *truth.named):
            re.compile(pattern)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_a_job_says_what_it_needs_and_what_its_trouble_is(job: Job) -> None:
    assert job.programs
    assert job.truth.trouble
    assert set(job.commands) <= {"offcpu", "wall", "wakeup"}


def test_there_is_a_truth_of_each_capture() -> None:
    captures = {path.name.removesuffix(".pb.gz") for path in CAPTURES.glob("*.pb.gz")}
    assert captures <= set(TRUTHS)


def test_there_is_a_capture_of_each_job() -> None:
    captures = {path.name.removesuffix(".pb.gz") for path in CAPTURES.glob(f"{PREFIX}*.pb.gz")}
    assert captures == {job.capture(command) for job in JOBS for command in job.commands}


def test_each_program_of_ours_is_of_a_job() -> None:
    tables = "".join(path.read_text() for path in (HERE / "jobs").glob("*.py"))
    for path in PROGRAMS.iterdir():
        name = path.stem if path.suffix in (".java", ".go") else path.name  # which are built
        assert path.name == "__pycache__" or re.search(rf"[\"']{re.escape(name)}[\"']", tables), path.name
