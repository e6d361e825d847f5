from __future__ import annotations

import json
from dataclasses import replace

import pytest
from job_profiles import job
from pace_profiles import found_by, steps
from scans import HOSTILE
from stallscope.converters.base.text import printable
from stallscope.converters.facts.jobs import jobs_of
from stallscope.converters.scan.report import report_of
from stallscope.converters.scan.step_lines import pace_lines
from stallscope.converters.scan.steps import paces, paces_json
from summary_profiles import MS, SECOND, Tracee, empty, facts_of


def test_as_json_with_hostile_names() -> None:
    profile = job(0.3, 0.3, 0.3)
    facts = facts_of(profile)
    found = paces([replace(steps(100), name=HOSTILE), steps(101)], facts, jobs_of(facts))
    (hostile, plain) = json.loads(json.dumps(paces_json(found)))
    assert "\udcff" not in hostile["name"]
    (pace,) = plain["paces"]
    assert pace == {
        "pid": 101,
        "tid": 101,
        "rank": 1,
        "steps_per_second": pytest.approx(10),
        "mean_ns": 90 * MS,
        "between_ns": 10 * MS,
        "loader_ns": 0,
        "without_loader_per_second": None,
        "steps": 100,
        "median_ns": 90 * MS,
        "p90_ns": None,
        "max_ns": 90 * MS,
        "on_cpu_ns": 0,
        "runnable_ns": 0,
        "blocked_ns": 90 * MS,
        "waits": [],
        "found": None,
        "reader": None,
    }
    assert printable(pace_lines(found)[0]).isprintable()


def test_a_scan_without_steps_has_none() -> None:
    assert report_of(job(0.3, 0.3, 0.3)).to_json()["steps"] == []


def test_evidence_as_json() -> None:
    profile = empty()
    Tracee(profile, 7, "train", 7, "train").run(10 * SECOND)
    facts = facts_of(profile)
    ((made,),) = (each["paces"] for each in paces_json(paces([found_by(7, 7)], facts, jobs_of(facts))))
    assert made["found"] == {
        "frames": ["main", "next_batch"],
        "kernel_wait": "futex_wait",
        "intervals": 100,
        "deviation_ns": 3 * MS,
        "wait_ns": 60 * MS,
        "timed": False,
    }
    assert made["reader"] == {
        "threads": [[7, 8]],
        "number": 1,
        "batches_per_second": pytest.approx(10),
        "work_ns": 80 * MS,
        "at_most_per_second": pytest.approx(12.5),
    }
    assert [(wait["frames"], wait["time_ns"]) for wait in made["waits"]] == [
        (["main", "next_batch"], 60 * MS),
        (["main", "save", "fsync"], 20 * MS),
    ]
    assert (made["on_cpu_ns"], made["runnable_ns"], made["blocked_ns"]) == (15 * MS, 5 * MS, 80 * MS)


def test_a_report_has_those_that_nobody_named() -> None:
    profile = job(0.3, 0.3, 0.3)
    profile.found_steps = [found_by(100)]
    (made,) = report_of(profile).to_json()["steps"]
    assert made["name"] == "main → next_batch"
    assert report_of(profile).summary.answer == report_of(job(0.3, 0.3, 0.3)).summary.answer
