"""Communicators by what their memory has in common."""

from __future__ import annotations

import random
import struct

from stallscope.converters.collectives.evidence import Placed, candidates
from stallscope.converters.collectives.evidence import placed as placed_of
from stallscope.converters.collectives.meetings import Member

SIZE = 4096
HASH, MAGIC = 0x9E3779B97F4A7C15, 0x0280028002800280
PLACE = 1024


def memory(member: Member, rank: int, size: int, digest: int = HASH) -> bytes:
    """The first bytes of a communicator: a magic number, addresses, small numbers that differ by process, the hash, the
    rank and the number of ranks."""
    chance = random.Random(member.pid << 32 | member.comm)
    made = bytearray(SIZE)
    struct.pack_into("<Q", made, 0, MAGIC)
    for place in range(8, 512, 8):
        struct.pack_into("<Q", made, place, 0x7F0000000000 | chance.getrandbits(40))
    for place in range(512, 800, 4):
        struct.pack_into("<i", made, place, chance.randrange(-1, 3))
    struct.pack_into("<Qii", made, PLACE, digest, rank, size)
    return bytes(made)


def placed(memories: dict[Member, bytes]) -> list[list[Placed]]:
    return placed_of({member: candidates(data) for member, data in memories.items()})


def members(*pids: int, comm: int = 0x5000) -> list[Member]:
    return [Member(pid, comm) for pid in pids]


def test_ranks_of_one_communicator() -> None:
    found = placed({each: memory(each, 3 - i, 4) for i, each in enumerate(members(10, 11, 12, 13))})
    assert found == [[Placed(Member(pid, 0x5000), rank, 4) for rank, pid in enumerate((13, 12, 11, 10))]]


def test_two_communicators_of_the_same_processes_are_told_apart_by_their_hashes() -> None:
    world = {each: memory(each, i, 4) for i, each in enumerate(members(10, 11, 12, 13))}
    halves = {
        each: memory(each, i // 2, 2, digest=HASH ^ (1 + i % 2) << 50)
        for i, each in enumerate(members(10, 11, 12, 13, comm=0x9000))
    }
    found = placed(world | halves)
    assert sorted([(each.member.pid, each.rank, each.size) for each in group] for group in found) == [
        [(10, 0, 2), (12, 1, 2)],
        [(10, 0, 4), (11, 1, 4), (12, 2, 4), (13, 3, 4)],
        [(11, 0, 2), (13, 1, 2)],
    ]


def test_ranks_of_other_hosts_are_missing() -> None:
    ((first, second),) = placed({each: memory(each, 4 + i, 8) for i, each in enumerate(members(10, 11))})
    assert ((first.rank, first.size), (second.rank, second.size)) == ((4, 8), (5, 8))


def test_nothing_is_guessed() -> None:
    two = members(10, 11)
    assert placed({each: memory(each, 0, 2) for each in two}) == [], "both are rank 0"
    assert placed({each: memory(each, i, 2, digest=HASH + (i << 50)) for i, each in enumerate(two)}) == []
    assert placed({two[0]: memory(two[0], 0, 2)}) == []
    assert placed({two[0]: memory(two[0], 0, 2), two[1]: b""}) == []
    assert placed({two[0]: memory(two[0], 0, 2), two[1]: memory(two[1], 1, 2)[:PLACE]}) == [], "it cannot be read"
    assert placed({}) == []


def test_places_that_contradict_each_other() -> None:
    made = {}
    for i, each in enumerate(members(10, 11)):
        both = bytearray(memory(each, i, 2))
        struct.pack_into("<Qii", both, 2000, HASH + 1, 1 - i, 2)
        made[each] = bytes(both)
    assert placed(made) == []
    for each, data in made.items():
        made[each] = data[:2008] + data[PLACE + 8 : PLACE + 16] + data[2016:]
    assert len(placed(made)) == 1, "they say the same"


def test_what_stands_behind_a_communicator_is_not_its_own() -> None:
    """The memory of two lies side by side: each ends with the number that it begins with."""
    ends = struct.pack("<Q", MAGIC)
    made = {}
    for i, each in enumerate(members(10, 11, 12, 13)):
        half = memory(each, i // 2, 2, digest=HASH ^ (1 + i % 2) << 50)
        made[each] = half + ends + memory(each, i, 4) + ends
    assert [[(each.member.pid, each.rank) for each in group] for group in placed(made)] == [
        [(10, 0), (12, 1)],
        [(11, 0), (13, 1)],
    ]
    # An older version does not tell where it ends: then both make sense.
    assert placed({each: bytes(8) + data[8:].replace(ends, bytes(8)) for each, data in made.items()}) == []


def test_memory_that_is_full_of_them_is_no_communicator() -> None:
    row = struct.pack("<Qii", HASH, 0, 2)
    assert len(candidates(4096 * row)) == 4096
    assert len(candidates(4097 * row)) == 0


def test_words_that_can_be_the_hash() -> None:
    rows = [(HASH, 0, 2), (HASH, 1, 2), (HASH, 2, 2), (HASH, -1, 2), (HASH, 0, 1), (HASH, 0, 1 << 30), (7, 0, 2)]
    found = candidates(b"".join(struct.pack("<Qii", *row) for row in rows))
    assert found.tolist() == [(0, HASH, 0, 2), (16, HASH, 1, 2)]
    for size in range(3):
        assert not len(candidates(bytes(8 * size + 3)))
