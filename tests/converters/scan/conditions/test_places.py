from __future__ import annotations

import pytest
from job_profiles import job, late
from stallscope.converters.facts.jobs import jobs_of
from stallscope.converters.model import Profile
from stallscope.converters.rules.rank_states import RankStates, states_of
from stallscope.converters.scan.conditions.holding import holding
from stallscope.converters.scan.conditions.parser import parse
from stallscope.converters.scan.conditions.places import places_in_jobs
from stallscope.converters.scan.process_verdicts import process_verdicts
from summary_profiles import SECOND, Tracee, facts_of


def states(profile: Profile) -> list[RankStates]:
    facts = facts_of(profile)
    return [states_of(facts, each) for each in jobs_of(facts)]


def ranks(condition: str, profile: Profile) -> list[int]:
    """Pids of the processes for which it holds."""
    facts = facts_of(profile)
    jobs = [states_of(facts, each) for each in jobs_of(facts)]
    return sorted(each.pid for each in holding(parse(condition), facts, process_verdicts(facts), None, jobs))


def test_place_of_each_rank() -> None:
    places = places_in_jobs(states(job(0.3, 0.3, 0.9)))
    assert [places[pid].number for pid in sorted(places)] == [0, 1, 2]
    assert {each.ranks for each in places.values()} == {3}
    assert [places[pid].late for pid in sorted(places)] == [0, 0, pytest.approx(0.6)]


def test_two_ranks_have_no_median() -> None:
    assert [each.late for each in places_in_jobs(states(job(0.3, 0.9))).values()] == [None, None]


@pytest.mark.parametrize(
    ("condition", "pids"),
    [
        ("late > 20%", [103]),
        ("late > 99%", []),
        ("rank == 3 and ranks == 8", [103]),
        ("rank >= 6", [106, 107]),
        ("rank != 3 and late < 1%", [100, 101, 102, 104, 105, 106, 107]),
    ],
)
def test_ranks_for_which_it_holds(condition: str, pids: list[int]) -> None:
    assert ranks(condition, late()) == pids


def test_nothing_is_known_of_a_process_without_a_job() -> None:
    made = late()
    Tracee(made, 900, "app", 900, "app").run(9 * SECOND)
    assert 900 not in ranks("rank >= 0", made)
    assert 900 not in ranks("not rank >= 0", made)
    assert ranks("rank == 3 or name == 'app'", made) == [103, 900]
