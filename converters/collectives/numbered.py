"""Ranks of process groups of PyTorch that were there before the trace, by what their memory has in common.

The rank and the number of ranks are behind the virtual table and the reference count, whose sizes change with the
version (``rank_`` and ``size_`` of ``c10d::Backend``, torch/csrc/distributed/c10d/Backend.hpp). No offset is assumed:
one is believed if it makes sense in all processes at once, and no other one does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ..facts import thresholds
from .meetings import Member

BYTES = 64
"""Bytes from the begin of a group that are looked at."""
_WORD = 8


class Number(NamedTuple):
    """A rank and the number of ranks of its group."""

    rank: int
    size: int


def numbers(data: bytes) -> dict[int, Number]:
    """Pairs of numbers in a group's memory that can be these, by their offsets."""
    words = (int.from_bytes(data[at : at + 4], "little") for at in range(0, min(len(data), BYTES) // _WORD * _WORD, 4))
    pairs = enumerate(zip(words, words, strict=True))
    return {
        _WORD * place: Number(rank, size) for place, (rank, size) in pairs if rank < size <= thresholds.MOST_RANKS > 1
    }


def ranks(memory: Mapping[Member, Mapping[int, Number]]) -> dict[Member, Number]:
    """Rank and number of ranks of each group. Empty if no place in them tells, or if several do. Groups without any such
    numbers have one rank, or their processes have ended: nothing is told of these."""
    memory = {member: found for member, found in memory.items() if found}
    if len({each.pid for each in memory}) < thresholds.PROCESSES_FIT:
        return {}
    places = set.intersection(*(set(found) for found in memory.values()))
    told = [{member: found[place] for member, found in memory.items()} for place in sorted(places)]
    told = [each for each in told if _tells(each)]
    return told[0] if len(told) == 1 else {}


def _tells(found: Mapping[Member, Number]) -> bool:
    """Whether processes have different ranks in groups of several ranks."""
    return len({each.rank for each in found.values()}) > 1 and all(each.size > 1 for each in found.values())


def one_each(
    found: Sequence[tuple[Member, Number]], are_apart: Callable[[int, int], bool]
) -> list[list[tuple[Member, Number]]]:
    """Groups of endpoints that are one communicator because they cannot be several: of each rank there is one, and no
    process has another group of as many ranks."""
    by_size: defaultdict[int, list[tuple[Member, Number]]] = defaultdict(list)
    for each in found:
        by_size[each[1].size].append(each)
    return [group for group in by_size.values() if len(group) > 1 and _are_one(group, are_apart)]


def _are_one(group: Sequence[tuple[Member, Number]], are_apart: Callable[[int, int], bool]) -> bool:
    pids = sorted({member.pid for member, _ in group})
    return len(pids) == len({number.rank for _, number in group}) == len(group) and not any(
        are_apart(pids[0], pid) for pid in pids[1:]
    )
