"""Words for ranks that stand still. Those for late ranks: tests/converters/rules/test_late_rank.py."""

from __future__ import annotations

from dataclasses import replace

import pytest
from collective_profiles import UNKNOWN, one_late, profile_of, spent, standing
from stallscope.converters.model.collectives import CollectiveKind, Standing
from stallscope.converters.model.sites import Site
from stallscope.converters.model.steps import Spent, StepWait
from stallscope.converters.model.wait_objects import LABEL, PIPE, ObjectEnd, WaitObject
from stallscope.converters.phrases.collectives import crossed, kind_text, stands_still
from stallscope.converters.summary.collective_sentences import sentences
from stallscope.converters.summary.judging import read
from summary_profiles import EXE, MS, READ, SECOND, Tracee, user


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
    assert crossed([one, other]) == (
        "Two communicators of train wait for each other: rank 0 (pid 10), rank 2 (pid 12), rank 3 (pid 13) are in "
        "all-reduce 26 of one, rank 1 (pid 11) is in all-reduce 25 of the other: they call them in different orders."
    )
    assert sentences([one, other]) == (crossed([one, other]),)
    assert len(sentences([one, one_late(), replace(one, size=9)])) == 2


def test_a_circle_of_many_ranks_and_communicators() -> None:
    one = standing()
    many = tuple(replace(one.ranks[0], rank=number, pid=10 + number) for number in range(8))
    inside = tuple(Standing(each.pid, 26, "all-reduce", 4096, 1) for each in many)
    wide = replace(one, ranks=many, standing=inside)
    text = crossed([wide, one, wide, one])
    assert text.startswith(
        "4 communicators of train wait for each other in a circle: ranks 0, 1, 2 … 7 are in all-reduce "
    )
    assert "26 of one; rank 0 (pid 10), rank 2 (pid 12), rank 3 (pid 13) are in" in text
    assert text.endswith("; and so on, 1 more: they call them in different orders.")
    assert "ranks 0, 1, 2, 3 are in" in crossed([replace(wide, ranks=many[:4], standing=inside[:4]), one])
    unknown = replace(wide, ranks=tuple(replace(each, rank=UNKNOWN) for each in many))
    assert "pids 10, 11, 12 … 17 are in" in crossed([unknown, one])


def test_whom_a_missing_rank_waits_for() -> None:
    made = profile_of(standing())
    made.samples.clear()
    wait = (*user(EXE, "main", "train"), *READ[1:])
    Tracee(made, 11, "train", 11, "train").wait(wait, "interruptible", SECOND, 1)
    site = Site(("train", "fetch", "read"), "pipe_read")
    one = replace(spent(MS, on_cpu=0), waits=(StepWait(site, MS, 1),))
    of = standing()
    found = replace(of, standing=(of.standing[0], replace(of.standing[1], meanwhile=one), *of.standing[2:]))
    made.samples[-1] = made.samples[-1]._replace(labels=tuple(sorted((*made.samples[-1].labels, (LABEL, 7)))))
    made.objects = [WaitObject(7, PIPE, ends=[ObjectEnd("python loader.py", 77)])]
    facts = read(made).facts
    (told,) = sentences([found], facts)
    assert told.endswith(". Rank 1 waits for python loader.py (pid 77), which was not traced.")
    elsewhere = replace(one, waits=(StepWait(Site(("train", "save"), ""), MS, 1),))
    of = replace(of, standing=(of.standing[0], replace(of.standing[1], meanwhile=elsewhere), *of.standing[2:]))
    assert "waits for python" not in sentences([of], facts)[0], "it has done something else since then"


def test_a_rank_that_is_in_another_call() -> None:
    found = standing()
    elsewhere = replace(found.standing[1], meanwhile=spent(1), elsewhere="MPI_Barrier of another communicator")
    told = stands_still(replace(found, standing=(found.standing[0], elsewhere, *found.standing[2:])))
    assert told.endswith(
        "rank 1 (pid 11) has not come since its collective 25: it is in MPI_Barrier of another communicator."
    )
