from __future__ import annotations

import pytest
from job_profiles import job, rank
from stallscope.converters.facts.gpus import are_usual, gpus_of, without_gpu
from stallscope.converters.facts.jobs import jobs_of
from stallscope.converters.model import Profile
from stallscope.converters.model.processes import ProcessTimes
from summary_profiles import SECOND, Tracee, empty, facts_of


def monitored(*gpus: str) -> Profile:
    """Two ranks with a GPU each, and a process that has these open."""
    made = job(0.1, 0.1, gpus=True)
    for i, open_ in enumerate(gpus):
        Tracee(made, 900 + i, "dcgm", 900 + i, "dcgm").run(SECOND)
        made.processes.append(ProcessTimes(900 + i, "dcgm", ranks={"gpu": open_}))
    return made


def uses(profile: Profile) -> list[tuple[int, list[int], tuple[int, ...]]]:
    facts = facts_of(profile)
    return [(each.minor, [rank.pid for rank in each.ranks], each.others) for each in gpus_of(facts, jobs_of(facts))]


def test_who_has_which_gpu_open() -> None:
    assert uses(monitored("0,1", "1")) == [(0, [100], (900,)), (1, [101], (900, 901))]


@pytest.mark.parametrize("text", ["", "x", "\u0663", "99999", ",,"])
def test_what_is_no_number_is_left_out(text: str) -> None:
    assert uses(monitored(text)) == uses(monitored())


def usual(profile: Profile) -> bool:
    facts = facts_of(profile)
    jobs = jobs_of(facts)
    return are_usual(gpus_of(facts, jobs), jobs)


def test_one_gpu_each_is_usual() -> None:
    assert usual(monitored())
    assert usual(monitored("7")), "a program of its own"
    assert not usual(monitored("0"))


def test_a_rank_without_a_gpu_is_not() -> None:
    made = empty()
    for i, gpu in enumerate(("0", "")):
        rank(made, 100 + i, i, gpu=gpu)
    assert not usual(made)
    assert [each.pid for each in without_gpu(jobs_of(facts_of(made)))] == [101]


@pytest.mark.parametrize("gpus", [("0", "0"), ("0,1", "2")])
def test_a_shared_gpu_and_several_are_not(gpus: tuple[str, str]) -> None:
    made = empty()
    for i, gpu in enumerate(gpus):
        rank(made, 100 + i, i, gpu=gpu)
    assert not usual(made)


def test_a_job_on_cores_has_none() -> None:
    assert usual(job(0.1, 0.1))
    assert without_gpu(jobs_of(facts_of(job(0.1, 0.1)))) == ()
