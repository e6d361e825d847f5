"""Communicators by what their memory has in common."""

from __future__ import annotations

import random
import struct

from stallscope.converters.collectives.evidence import Placed, placed
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
