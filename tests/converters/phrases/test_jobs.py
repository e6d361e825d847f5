from __future__ import annotations

import pytest
from job_profiles import job, late, rank
from stallscope.converters.facts.jobs import jobs_of
from stallscope.converters.model import Profile
from stallscope.converters.model.origins import MEMORY, Ancestor
from stallscope.converters.phrases.jobs import alike, job_name, straggler, unlike
from stallscope.converters.rules.rank_states import states_of
from stallscope.converters.rules.straggler import straggler_of
from summary_profiles import EXE, SECOND, SLEEP, Tracee, empty, facts_of, user


def said(profile: Profile) -> str:
    facts = facts_of(profile)
    found = straggler_of(facts, states_of(facts, jobs_of(facts)[0]))
    assert found
    return straggler(found)


def name(profile: Profile) -> str:
    return job_name(jobs_of(facts_of(profile))[0], "train")


def test_who_is_late() -> None:
    assert said(late()) == (
        "Rank 3 (pid 103, GPU 3) keeps the other 7 ranks waiting: they wait for ranks for 90.0 % of their time "
        "(median), rank 3 for 20.0 %. Meanwhile rank 3 is for 80.0 % of its time asleep in main → nap → "
        "clock_nanosleep (the others: 10.0 %)."
    )


def test_several_are_late() -> None:
    assert said(job(0.1, 0.1, 0.8, 0.1, 0.1, 0.7, 0.1)).startswith(
        "Rank 2 (pid 102) and rank 5 (pid 105) keep the other 5 ranks waiting: "
    )
    three = said(job(*[0.1] * 5, 0.8, 0.8, 0.8))
    assert "Rank 5 (pid 105) and rank 6 (pid 106) and 1 other keep the other 5 ranks waiting" in three


def test_its_workers_are_told() -> None:
    made = late()
    rank(made, 200, 3, 1.0, above=(Ancestor(103, "train"), Ancestor(50, "mpirun")))
    assert said(made).endswith("; its 1 worker: 100.0 % asleep in main → nap → clock_nanosleep.")


def test_a_job() -> None:
    assert name(job(0.1, 0.1)) == "Job of 2 ranks of train (0, 1), started by mpirun (50)"
    made = empty()
    for i in range(3):
        rank(made, 100 + i, 8 + i, size=16, source=MEMORY)
    assert name(made) == (
        "Job of 3 ranks of train (8-10 of 16), started by mpirun (50), numbers from the environment in their memory"
    )


@pytest.mark.parametrize("own", [0.1, 0.5])
def test_ranks_that_are_alike(own: float) -> None:
    facts = facts_of(job(own, own, own))
    told = alike(states_of(facts, jobs_of(facts)[0]))
    others, asleep = f"{100 - 100 * own:.1f} % waiting for other ranks", f"{100 * own:.1f} % asleep"
    assert told == f"all alike: {others}, {asleep}"


def test_a_part_of_what_it_does_is_in_one_place() -> None:
    made = late()
    third = next(each for each in made.threads if each.pid == 103)
    Tracee(made, 103, "train", 103, "train").wait(
        (*user(EXE, "main", "rest"), *SLEEP[1:]), "interruptible", 5 * SECOND, 9
    )
    last = made.threads.pop()
    third.wall += last.wall
    third.blocked["interruptible"] += last.wall
    assert said(made).endswith("nap → clock_nanosleep (53.3 % there; the others: 10.0 %).")


def test_ranks_that_are_not_alike() -> None:
    """Two have no median, and of three none may be late."""
    for made, told in (
        (job(0.875, 0.125), "not alike: 12.5 % (rank 0) to 87.5 % (rank 1) of their time waiting for other ranks"),
        (job(0.3, 0.5), ""),
        (job(0.0, 0.5, 1.0), "not alike: 0.0 % (rank 2) to 100.0 % (rank 0) of their time waiting for other ranks"),
    ):
        facts = facts_of(made)
        assert unlike(states_of(facts, jobs_of(facts)[0])) == told
