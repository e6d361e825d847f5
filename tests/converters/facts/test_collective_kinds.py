"""The operation by which it is judged who comes late."""

from __future__ import annotations

from stallscope.converters.facts.collective_kinds import judged, often
from stallscope.converters.model.collectives import CollectiveKind


def kind(what: str, meetings: int, *, told_apart: bool = True) -> CollectiveKind:
    by_rank = ((0, meetings), (-1, 1), (meetings, 0)) if told_apart else ()
    return CollectiveKind(what, 4096, meetings, 1, 1, meetings, *by_rank)


def test_the_first_with_enough_meetings() -> None:
    barrier, reduces, casts = kind("barrier", 1), kind("all-reduce", 10), kind("broadcast", 90)
    assert often((barrier, reduces, casts)) == [reduces, casts]
    assert judged((barrier, reduces, casts)) == reduces


def test_all_of_them_if_none_has_enough_or_ranks_are_not_told_apart() -> None:
    assert judged(()) is None
    assert judged((kind("all-reduce", 9), kind("broadcast", 9))) is None
    assert judged((kind("all-reduce", 99, told_apart=False),)) is None
