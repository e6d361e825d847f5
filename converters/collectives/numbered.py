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
from ..facts.collective_thresholds import MOST_RANKS
from .meetings import Member

BYTES = 64
"""Bytes from the begin of a group that are looked at."""


class Number(NamedTuple):
    """A rank and the number of ranks of its group."""

    rank: int
    size: int


def numbers(data: bytes) -> dict[int, Number]:
    """Pairs of numbers in a group's memory that can be these, by their offsets."""
    words = [int.from_bytes(data[at : at + 4], "little") for at in range(0, min(len(data), BYTES) // 8 * 8, 4)]
    pairs = zip(words[::2], words[1::2], strict=True)
    fit = {8 * place: Number(*pair) for place, pair in enumerate(pairs)}
    return {place: each for place, each in fit.items() if each.rank < each.size and 1 < each.size <= MOST_RANKS}


def ranks(memory: Mapping[Member, Mapping[int, Number]]) -> dict[Member, Number]:
    """Rank and number of ranks of each group. Empty if no place in them tells, or if several do. Nothing is told of
    groups without any such numbers: they have one rank, or their processes have ended."""
    memory = {member: found for member, found in memory.items() if found}
    if len({each.pid for each in memory}) < thresholds.PROCESSES_FIT:
        return {}
    places = set.intersection(*(set(found) for found in memory.values()))
    told = [{member: found[place] for member, found in memory.items()} for place in sorted(places)]
    told = [each for each in told if _tells(each)]
    return told[0] if len(told) == 1 else {}


def _tells(found: Mapping[Member, Number]) -> bool:
    """Whether there are different ranks."""
    return len({each.rank for each in found.values()}) > 1


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
