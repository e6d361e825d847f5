"""Words for ranks that stand still. Those for late ranks: tests/converters/rules/test_late_rank.py."""

from __future__ import annotations

from dataclasses import replace

import pytest
from collective_profiles import UNKNOWN, one_late, spent, standing
from stallscope.converters.model.collectives import CollectiveKind
from stallscope.converters.model.steps import Spent
from stallscope.converters.phrases.collectives import crossed, kind_text, stands_still
from stallscope.converters.summary.collective_sentences import sentences
from summary_profiles import MS


def test_a_rank_that_has_not_come() -> None:
    assert stands_still(standing()) == (
        "The ranks of train stand still in all-reduce 26 (4 KiB): 3 of 4 are in it; rank 1 (pid 11) has not come "
        "since its collective 25."
    )


@pytest.mark.parametrize(
    ("meanwhile", "told"),
    [
        (
            spent(1990 * MS, 10 * MS, count=1),
            "for 2.00 s, of which it is blocked in train → load_batch → read for 99.5 %",
        ),
        (spent(10 * MS, 1990 * MS, count=1), "for 2.00 s, of which it runs in train → compute for 99.5 %"),
        (spent(0, 2000 * MS, count=1, samples=0), "for 2.00 s, of which it runs for 100.0 %"),
        (spent(0, 500 * MS, 1500 * MS, count=1), "for 2.00 s, of which it waits for a core for 75.0 %"),
        (replace(spent(2000 * MS, 0, count=1), waits=()), "for 2.00 s, of which it is blocked for 100.0 %"),
    ],
)
def test_what_a_rank_does_that_has_not_come(meanwhile: Spent, told: str) -> None:
    found = standing()
    asleep = replace(found.standing[1], meanwhile=meanwhile)
    found = replace(found, standing=(found.standing[0], asleep, *found.standing[2:]))
    assert stands_still(found).endswith(f"rank 1 (pid 11) has not come since its collective 25: {told}.")


@pytest.mark.parametrize(
    ("stopped", "told"), [(996, "is stopped in train → load_batch → read for 49.8 %"), (994, "is blocked")]
)
def test_a_rank_that_is_stopped(stopped: int, told: str) -> None:
    """Stops for most of the time for which it is blocked, or not."""
    found = standing()
    asleep = replace(found.standing[1], meanwhile=spent(1990 * MS, 10 * MS, count=1), stopped=stopped * MS)
    found = replace(found, standing=(found.standing[0], asleep, *found.standing[2:]))
    assert f"of which it {told}" in stands_still(found)


def test_a_rank_that_has_ended() -> None:
    found = standing()
    for number, told in ((25, " after its collective 25"), (0, "")):
        ended = replace(found.standing[1], has_ended=True, number=number)
        found = replace(found, standing=(found.standing[0], ended, *found.standing[2:]))
        assert stands_still(found).endswith(f"rank 1 (pid 11) has ended{told}.")


def test_a_rank_that_calls_something_else() -> None:
    assert "3 of 4 are in it; rank 1 (pid 11) calls broadcast (2 KiB) instead." in stands_still(
        standing(what="broadcast", size=2048)
    )


def test_a_rank_that_called_none_and_has_no_number() -> None:
    found = standing()
    ranks = tuple(replace(each, rank=UNKNOWN) for each in found.ranks)
    none = replace(found.standing[1], number=0)
    found = replace(found, ranks=ranks, standing=(found.standing[0], none, *found.standing[2:]))
    assert stands_still(found).endswith("pid 11 has called none.")


def test_ranks_that_go_on() -> None:
    assert stands_still(one_late()) == ""


def test_kinds() -> None:
    assert kind_text(CollectiveKind("all-reduce", 4096, 1, 1, 1, 1)) == "all-reduce (4 KiB)"
    assert kind_text(CollectiveKind("barrier", 0, 1, 1, 1, 1)) == "barrier"
    assert kind_text(CollectiveKind("all-to-all", UNKNOWN, 1, 1, 1, 1)) == "all-to-all"


def test_two_communicators_that_wait_for_each_other() -> None:
    """Rank 1 has called the second one first."""
    one = standing()
    inside = replace(one.standing[0], pid=11, number=25)
    outside = [replace(each, what="", number=24) for each in one.standing]
    other = replace(one, standing=(outside[0], inside, *outside[2:]))
    assert crossed(one, other) == (
        "Two communicators of train wait for each other: rank 0 (pid 10), rank 2 (pid 12), rank 3 (pid 13) are in "
        "all-reduce 26 of one, rank 1 (pid 11) is in all-reduce 25 of the other: they call them in different orders."
    )
    assert sentences([one, other]) == (crossed(one, other),)
    assert crossed(one, one) == ""
    assert len(sentences([one, one_late(), replace(one, size=9)])) == 2


def test_a_rank_that_is_in_another_call() -> None:
    found = standing()
    elsewhere = replace(found.standing[1], meanwhile=spent(1), elsewhere="MPI_Barrier of another communicator")
    told = stands_still(replace(found, standing=(found.standing[0], elsewhere, *found.standing[2:])))
    assert told.endswith(
        "rank 1 (pid 11) has not come since its collective 25: it is in MPI_Barrier of another communicator."
    )
