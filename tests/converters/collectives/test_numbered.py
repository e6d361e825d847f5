"""Ranks by the memory of process groups."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from stallscope.converters.collectives.communicators import communicators
from stallscope.converters.collectives.meetings import Member
from stallscope.converters.collectives.numbered import BYTES, Number, numbers, one_each, ranks
from stallscope.converters.collectives.records import FIELDS, CallTable
from stallscope.converters.facts.collective_thresholds import MOST_RANKS

GROUP = 0x5000


def group(rank: int, size: int, counts: int = 1, more: bytes = b"") -> bytes:
    """A virtual table, reference counts, the numbers, and what follows."""
    return struct.pack(f"<Q{counts}Q2i", 0x7F5512345678, *[1 << 32 | 3] * counts, rank, size) + more


def test_numbers_are_found_at_their_offset() -> None:
    assert numbers(group(1, 4)) == {16: Number(1, 4)}
    assert numbers(group(1, 4, counts=2)) == {24: Number(1, 4)}


@pytest.mark.parametrize(("rank", "size"), [(0, 1), (4, 4), (-1, 4), (0, MOST_RANKS + 1), (0, -4)])
def test_numbers_that_can_be_none(rank: int, size: int) -> None:
    assert numbers(group(rank, size)) == {}


def test_the_most_ranks() -> None:
    assert numbers(group(0, MOST_RANKS)) == {16: Number(0, MOST_RANKS)}


def test_memory_of_any_length() -> None:
    whole = group(1, 4) + bytes(BYTES) + group(1, 4)
    assert [len(numbers(whole[:size])) for size in range(30)] == [0] * 24 + [1] * 6
    assert numbers(whole).keys() == {16}, "only the begin is looked at"
    assert numbers(b"\xff" * 200) == {}


def of(*memory: bytes) -> dict[Member, Number]:
    """Each of its own process."""
    return ranks({Member(pid, GROUP): numbers(data) for pid, data in enumerate(memory, 10)})


def test_a_place_that_tells() -> None:
    told = of(group(0, 2), group(1, 2))
    assert told == {Member(10, GROUP): Number(0, 2), Member(11, GROUP): Number(1, 2)}


def test_groups_of_several_sizes() -> None:
    assert [each.rank for each in of(group(0, 2), group(1, 2), group(2, 4)).values()] == [0, 1, 2]


def test_a_process_that_has_ended_tells_nothing() -> None:
    assert of(group(0, 2), b"", group(1, 2)) == {Member(10, GROUP): Number(0, 2), Member(12, GROUP): Number(1, 2)}


@pytest.mark.parametrize(
    "memory",
    [
        (group(0, 2),),  # nothing to compare with
        (group(1, 2), group(1, 2)),  # the same number in all
        (group(0, 2), group(1, 2, counts=2)),  # at different places
        (group(0, 2, more=struct.pack("<2i", 1, 3)), group(1, 2, more=struct.pack("<2i", 0, 3))),  # two places tell
        (),
    ],
)
def test_places_that_do_not_tell(memory: tuple[bytes, ...]) -> None:
    assert of(*memory) == {}


def together(*known: tuple[int, int, int], apart: int = 0) -> list[list[int]]:
    """Pids of groups; process, rank and size of each. ``apart``: a process of another job."""
    found = [(Member(pid, GROUP + place), Number(rank, size)) for place, (pid, rank, size) in enumerate(known)]
    groups = one_each(found, lambda one, other: apart in (one, other))
    return [[member.pid for member, _ in each] for each in groups]


def test_one_of_each_rank_is_one_communicator() -> None:
    assert together((10, 0, 2), (11, 1, 2)) == [[10, 11]]
    assert together((10, 0, 4), (11, 3, 4)) == [[10, 11]], "others are on other hosts"
    assert together((10, 0, 2), (11, 1, 2), (10, 0, 3), (11, 2, 3)) == [[10, 11], [10, 11]]


@pytest.mark.parametrize(
    "known",
    [
        ((10, 0, 2),),
        ((10, 0, 2), (11, 1, 2), (12, 0, 2), (13, 1, 2)),  # two communicators of two ranks
        ((10, 0, 2), (10, 1, 2)),  # of one process
        ((10, 0, 2), (11, 1, 3)),
    ],
)
def test_what_can_be_several(known: tuple[tuple[int, int, int], ...]) -> None:
    assert together(*known) == []


@pytest.mark.parametrize("apart", [10, 11])
def test_processes_of_different_jobs(apart: int) -> None:
    assert together((10, 0, 2), (11, 1, 2), apart=apart) == []


NAMES = ("c10d::ProcessGroupGloo::ProcessGroupGloo", "c10d::ProcessGroupGloo::allreduce")
MADE, REDUCE = range(len(NAMES))


def table(ranks_of: dict[int, Number], *, made: bool = False, calls: int = 1) -> CallTable:
    """All-reduces of processes, with the numbers in their memory, or with the call that has made their groups."""
    rows = [(0, pid, MADE, (GROUP, 1, *number)) for pid, number in ranks_of.items()] if made else []
    rows += [(10 + 10 * step, pid, REDUCE, (1, GROUP, 0, 0)) for step in range(calls) for pid in ranks_of]
    found = np.zeros(len(rows), np.dtype(list(FIELDS)))
    for row, (began, pid, function, arguments) in zip(found, rows, strict=True):
        row["began"], row["ended"], row["pid"], row["function"] = began, began + 1, pid, function
        row["made"] = GROUP if function == MADE else 0
        row["arguments"][:4] = arguments
    memory = {Member(pid, GROUP): {16: number} for pid, number in ranks_of.items()}
    return CallTable(found, NAMES, numbers={} if made else memory)


@pytest.mark.parametrize(("made", "calls"), [(True, 1), (False, 5)])
def test_communicators_of_gloo(made: bool, calls: int) -> None:
    """One call is enough to know who meets, if the trace has all of them."""
    (found,) = communicators(table({10: Number(1, 2), 11: Number(0, 2)}, made=made, calls=calls))
    assert [(each.pid, each.rank, each.size, each.library) for each in found.members] == [
        (11, 0, 2, "Gloo"),
        (10, 1, 2, "Gloo"),
    ]
    assert (found.is_known, found.is_whole) == (True, made)
    assert [each.done.tolist() for each in found.calls] == [[10 * i + 11 for i in range(calls)]] * 2, "with the call"


def test_one_call_that_may_be_any() -> None:
    """Two ranks are known to meet, and nothing tells which calls are the same meeting."""
    found = communicators(table({10: Number(1, 2), 11: Number(0, 2)}))
    assert [len(each.members) for each in found] == [1, 1]


def test_equal_ranks_are_of_several_communicators() -> None:
    ranks_of = {10: Number(0, 2), 11: Number(0, 2), 12: Number(1, 2), 13: Number(1, 2)}
    found = communicators(table(ranks_of))
    assert [(len(each.members), each.is_known) for each in found] == [(1, False)] * 4
    assert {each.members[0].rank for each in found} == {0, 1}
