"""Collectives in profiles of our own."""

from __future__ import annotations

import io
from dataclasses import asdict, replace
from typing import Any

import pytest
from stallscope.converters import pprof
from stallscope.converters.model import Profile, ValueType
from stallscope.converters.model.collectives import (
    CollectiveKind,
    CollectiveRank,
    Collectives,
    Meeting,
    MessagePair,
    Messages,
    Standing,
)
from stallscope.converters.model.sites import Site
from stallscope.converters.model.steps import Spent, StepWait
from stallscope.converters.pprof.collectives import decoded

SPENT = Spent(3, 90, 30, 60, (StepWait(Site(("main", "load"), "do_nanosleep"), 60, 3),))
RANK = CollectiveRank(0, 10, "python", 11, 4, 1, -5, 90, SPENT, None, SPENT)
MADE = Collectives(
    "NCCL",
    2,
    True,
    3,
    40,
    7,
    (RANK, replace(RANK, rank=1, pid=12, process="\x1b[2J\udcff")),
    (CollectiveKind("all-reduce", -1, 3, 40, 50, 120, (1, 2), (-5, 5), (90, 30), 77, (0, 120), 3),),
    (Meeting(2, "all-reduce", 4096, (5, 45)),),
    (Standing(10, 4, "all-reduce", 4096, 99), Standing(12, 3, "", 0, 88, True, SPENT, 40, "MPI_Recv")),
    6,
    Messages((MessagePair(0, 1, 3, -1, 2, 50, 60, 1), MessagePair(1, 0, 3, 99, 2, 50, 60, 1)), (SPENT, None), 4, 5),
    2,
)


def test_they_survive() -> None:
    file = io.BytesIO()
    pprof.save(Profile([ValueType("blocked", "nanoseconds")], collectives=[MADE]), file)
    file.seek(0)
    assert pprof.load(file).collectives == [MADE]


def test_those_of_earlier_versions() -> None:
    """Captures that lack what each rank does by operation."""
    entry = asdict(MADE)
    del entry["messages"], entry["unsure"]
    for kind in entry["kinds"]:
        del kind["last"], kind["lateness"], kind["waited"], kind["took"], kind["caused"], kind["alike"]
    for rank in entry["ranks"]:
        del rank["before"]
    for standing in entry["standing"]:
        del standing["stopped"], standing["elsewhere"]
    standing = tuple(replace(each, stopped=0, elsewhere="") for each in MADE.standing)
    ranks = tuple(replace(each, before=None) for each in MADE.ranks)
    kinds = tuple(replace(each, last=(), lateness=(), waited=(), took=-1, caused=(), alike=0) for each in MADE.kinds)
    assert decoded(entry) == replace(MADE, ranks=ranks, kinds=kinds, standing=standing, messages=None, unsure=0)


def test_those_that_do_not_tell_what_absent_ranks_do() -> None:
    entry = asdict(MADE)
    for standing in entry["standing"]:
        del standing["has_ended"], standing["meanwhile"], standing["stopped"], standing["elsewhere"]
    plain = {"has_ended": False, "meanwhile": None, "stopped": 0, "elsewhere": ""}
    assert decoded(entry) == replace(MADE, standing=tuple(replace(each, **plain) for each in MADE.standing))
    del entry["standing"][0]["since"]
    with pytest.raises(ValueError, match="collectives"):
        decoded(entry)


def with_messages(**changes: Any) -> dict[str, Any]:
    return changed(messages={**asdict(MADE)["messages"], **changes})


def with_pair(**changes: Any) -> dict[str, Any]:
    return with_messages(pairs=[{**asdict(MADE)["messages"]["pairs"][0], **changes}])


def changed(**changes: Any) -> dict[str, Any]:
    return {**asdict(MADE), **changes}


@pytest.mark.parametrize(
    "entry",
    [
        None,
        [],
        {},
        changed(is_known=1),
        changed(library=7),
        changed(size=-2),
        changed(meetings=True),
        changed(spread=1 << 63),
        changed(more=1),
        changed(ranks=[]),
        changed(ranks=asdict(MADE)["ranks"][:1]),
        changed(ranks=[{**each, "waited": -1} for each in asdict(MADE)["ranks"]]),
        changed(ranks=[{**each, "between": {}} for each in asdict(MADE)["ranks"]]),
        changed(kinds=[{}]),
        changed(kinds=None),
        changed(kinds=[{**asdict(MADE.kinds[0]), "last": [1]}]),
        changed(kinds=[{**asdict(MADE.kinds[0]), "waited": []}]),
        changed(kinds=[{**asdict(MADE.kinds[0]), "waited": [1, -1]}]),
        changed(kinds=[{**asdict(MADE.kinds[0]), "more": 1}]),
        changed(ranks=[{**each, "before": {}} for each in asdict(MADE)["ranks"]]),
        changed(unsure=-1),
        changed(messages=[]),
        with_messages(between=[None]),
        with_messages(between=[{}, None]),
        with_messages(any_source="1"),
        with_messages(pairs=[{}]),
        with_messages(more=1),
        with_pair(receiver=2),
        with_pair(sender=-1),
        with_pair(waits=-1),
        with_pair(bytes=-2),
        changed(worst=[{**asdict(MADE.worst[0]), "arrivals": [1]}]),
        changed(standing=[asdict(MADE.standing[0])]),
        changed(standing=[{**asdict(each), "pid": 99} for each in MADE.standing]),
        changed(standing=[{**asdict(each), "has_ended": 1} for each in MADE.standing]),
        changed(standing=[{**asdict(each), "meanwhile": {}} for each in MADE.standing]),
    ],
)
def test_others_are_refused(entry: Any) -> None:
    with pytest.raises(ValueError, match=r"collectives|steps"):
        decoded(entry)
