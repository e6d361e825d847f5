from __future__ import annotations

import json
from dataclasses import replace

import pytest
from job_profiles import job
from scans import HOSTILE
from stallscope.converters.base.text import printable
from stallscope.converters.facts import thresholds
from stallscope.converters.facts.jobs import jobs_of
from stallscope.converters.model import Frame, Profile
from stallscope.converters.model.steps import Spent, Steps, StepWait
from stallscope.converters.scan.report import report_of
from stallscope.converters.scan.steps import pace_lines, paces, paces_json
from summary_profiles import LIBC, MS, READ, SECOND, Tracee, empty, facts_of, kernel, user

LOADER = "/v/lib/python3.11/site-packages/torch/utils/data/dataloader.py"
LOADING = (
    Frame("train", "python", file="train.py", line=5),
    Frame("_BaseDataLoaderIter.__next__", "python", file=LOADER, line=741),
    *user(LIBC, "poll"),
    *kernel("__x64_sys_poll", "do_sys_poll", "poll_schedule_timeout"),
)


def spent(count: int, each: int, *waits: StepWait) -> Spent:
    return Spent(count, count * each, 0, count * each, waits)


def steps(pid: int, each: int = 90 * MS, between: int = 10 * MS, wait: StepWait | None = None) -> Steps:
    """100 steps of a main thread."""
    waits = () if wait is None else (wait,)
    return Steps(
        *("train.py:train_step", "train", pid, "train", pid, spent(100, each), spent(99, between, *waits)),
        median=each, max=each, span=99 * (each + between), slowest=(),
    )  # fmt: skip


def lines(profile: Profile, *found: Steps) -> list[str]:
    facts = facts_of(profile)
    return pace_lines(paces(found, facts, jobs_of(facts)))


def test_the_rate_of_one() -> None:
    profile = empty()
    Tracee(profile, 7, "train", 7, "train").run(10 * SECOND)
    assert lines(profile, steps(7)) == ["train.py:train_step: 10 steps a second."]


def test_the_slowest_rank_comes_first() -> None:
    made = lines(job(0.3, 0.3, 0.3), steps(100), steps(101, 190 * MS), steps(102))
    assert made == ["train.py:train_step: 5 (rank 1) to 10 steps a second in 3 ranks."]


def test_a_rate_is_told_of_those_that_have_one() -> None:
    unknown = [replace(steps(pid), between=Spent(0, 0, 0, 0), span=0) for pid in (101, 102)]
    assert lines(job(0.3, 0.3, 0.3), steps(100), *unknown) == ["train.py:train_step: 10 steps a second in rank 0."]


def test_without_a_rate() -> None:
    profile = empty()
    Tracee(profile, 7, "train", 7, "train").run(10 * SECOND)
    one = replace(steps(7), between=Spent(0, 0, 0, 0), span=0)
    assert lines(profile, one) == ["train.py:train_step: 100 steps, too few for a rate."]
    assert lines(profile, replace(one, steps=Spent(0, 0, 0, 0))) == []


def loading(part: float) -> list[str]:
    """Lines of a process that waits for its loader for this part of its time."""
    profile = empty()
    Tracee(profile, 7, "train", 7, "train").run(SECOND).wait(LOADING, "interruptible", 9 * SECOND, 99)
    ((place, _),) = facts_of(profile).waits_of((7, 7)).items()
    loop = 100 * 90 * MS + 99 * 10 * MS
    return lines(profile, steps(7, wait=StepWait(place.site, round(part * loop), 99)))


def test_what_the_loader_costs() -> None:
    assert loading(0.5) == [
        "train.py:train_step: 10 steps a second; it waits 50.0 ms of a step (50.0 %) for its loader of data: with "
        "batches always there it would make 20."
    ]


def test_a_wait_that_hardly_matters_is_not_told() -> None:
    assert loading(thresholds.SIGNIFICANT - 0.01) == ["train.py:train_step: 10 steps a second."]
    assert "loader" in loading(thresholds.SIGNIFICANT + 0.01)[0]


def test_other_waits_are_not_the_loader() -> None:
    profile = empty()
    Tracee(profile, 7, "train", 7, "train").run(SECOND).wait(READ, "interruptible", 9 * SECOND, 99)
    ((place, _),) = facts_of(profile).waits_of((7, 7)).items()
    assert lines(profile, steps(7, wait=StepWait(place.site, 5 * SECOND, 99))) == [
        "train.py:train_step: 10 steps a second."
    ]


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
    }
    assert printable(pace_lines(found)[0]).isprintable()


def test_a_scan_without_steps_has_none() -> None:
    assert report_of(job(0.3, 0.3, 0.3)).to_json()["steps"] == []
