from __future__ import annotations

import pytest
from fact_pins import comes_first, is_for_work, pool
from stallscope.converters.model import Profile
from stallscope.converters.model.wait_objects import READS, TCP, UNIX
from stallscope.converters.scan.process_verdicts import process_verdicts
from summary_profiles import facts_of

OTHER = 3


def test_a_child_that_reads_what_its_parent_writes() -> None:
    assert is_for_work(pool())
    assert is_for_work(pool(kind=UNIX, does=""))


@pytest.mark.parametrize(
    "profile",
    [pool(writer=OTHER), pool(does=READS), pool(kind=TCP, does=""), pool(traced=False), pool(part=0.8)],
    ids=["a neighbour writes", "the parent reads", "over the network", "the parent is not traced", "also elsewhere"],
)
def test_other_waits(profile: Profile) -> None:
    assert not is_for_work(profile)


def test_any_other_wait_comes_first() -> None:
    assert comes_first(0.1) == {5}
    assert comes_first(0) == {2}, "there is nothing else"


def test_the_child_is_idle_in_the_table() -> None:
    kinds = {each.name: each.kind for each in process_verdicts(facts_of(pool()))}
    assert kinds["worker"] == "idle"
    kinds = {each.name: each.kind for each in process_verdicts(facts_of(pool(writer=OTHER)))}
    assert kinds["worker"] == "peer"
