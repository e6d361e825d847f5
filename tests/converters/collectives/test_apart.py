"""Processes of different jobs."""

from __future__ import annotations

from stallscope.converters.collectives.apart import Jobs
from stallscope.converters.model.origins import Ancestor, ProcessOrigin

SHELL, INIT = 2, 3


def origin(pid: int, *above: int, **variables: str) -> ProcessOrigin:
    return ProcessOrigin(pid, "train", [Ancestor(each, "sh") for each in (*above, SHELL, INIT)], variables=variables)


def apart(*of: ProcessOrigin) -> list[tuple[int, int]]:
    """Pairs of processes that are."""
    pids = [each.pid for each in of]
    jobs = Jobs(pids, {each.pid: each for each in of})
    return [(one, other) for one in pids for other in pids if one < other and jobs.are_apart(one, other)]


def test_those_of_two_launchers() -> None:
    both = apart(origin(10, 5), origin(11, 5), origin(20, 6), origin(21, 6))
    assert both == [(10, 20), (10, 21), (11, 20), (11, 21)]
    assert apart(origin(10), origin(11), origin(12)) == []


def test_each_rank_in_a_wrapper_of_its_own() -> None:
    assert apart(origin(10, 7, 5), origin(11, 8, 5), origin(12, 9, 5)) == []


def test_a_rank_that_has_started_the_others() -> None:
    assert apart(origin(10), origin(11, 10), origin(12, 10)) == []
    assert apart(origin(10), origin(11, 10), origin(20), origin(21, 20)) == [(10, 20), (10, 21), (11, 20), (11, 21)]


def test_environments_that_differ_or_are_the_same() -> None:
    one, other = {"MASTER_ADDR": "a", "MASTER_PORT": "1"}, {"MASTER_ADDR": "a", "MASTER_PORT": "2"}
    assert apart(origin(10, 5, **one), origin(11, 5, **other)) == [(10, 11)]
    agents = (origin(10, 5, **one), origin(11, 5, **one), origin(12, 6, **one), origin(13, 6, **one))
    assert apart(*agents) == [], "two agents of one job"


def test_nothing_is_known_without_origins() -> None:
    jobs = Jobs([10, 11, 12], {10: origin(10, 5), 12: ProcessOrigin(12, "train")})
    assert not any(jobs.are_apart(*pair) for pair in ((10, 11), (11, 12), (10, 12)))
