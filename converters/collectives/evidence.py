"""Communicators that were there before the trace, by what their memory has in common.

NCCL's communicator is a struct whose layout changes with its version. It holds, behind its channels, a hash that all
ranks of a communicator share, and behind that the rank and the number of ranks (``commHash``, ``rank`` and ``nRanks``
of ``struct ncclComm``, src/include/comm.h of NCCL). No offset is assumed: one is believed if it makes sense in all
processes at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..facts import thresholds
from .meetings import Member

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Candidates = NDArray[np.void]
    """Rows of `FIELDS`, by their places."""

FIELDS = (("place", "<i8"), ("hash", "<u8"), ("rank", "<i4"), ("size", "<i4"))
"""Columns of a table of words that can be the hash: offset in bytes, the word, and the two numbers behind it."""
_POINTERS = 48
"""Bits of addresses of user space: a hash has more, unless it is one of 65,536."""
_MAGIC = 0x0280028002800280
"""NCCL_MAGIC of comm.h: newer versions have it as the first and as the last word of the struct."""

_MOST = 4096
"""Words that can be the hash: memory with more of them is none of a communicator, but made to take much of ours."""


class Placed(NamedTuple):
    """A communicator's endpoint, and what its memory tells."""

    member: Member
    rank: int
    size: int


def candidates(data: bytes) -> Candidates:
    """Words of a communicator's memory that can be its hash. What follows the struct is left out, if it tells
    where it ends."""
    import numpy as np

    words = np.frombuffer(data, np.uint64, len(data) // 8)
    if len(words) and words[0] == _MAGIC:
        ends = np.flatnonzero(words[1:] == _MAGIC)
        words = words[: ends[0] + 1] if len(ends) else words
    behind = words[1:].view(np.int32).reshape(-1, 2)
    rank, size = behind.T
    fit = (size > 1) & (size <= thresholds.MOST_RANKS) & (rank >= 0) & (rank < size)
    (at,) = np.nonzero((words[:-1] >> np.uint64(_POINTERS) != 0) & fit)
    at = at[: _MOST if len(at) <= _MOST else 0]
    found = np.zeros(len(at), np.dtype(list(FIELDS)))
    found["place"], found["hash"], found["rank"], found["size"] = 8 * at, words[at], rank[at], size[at]
    return found


def placed(memory: Mapping[Member, Candidates]) -> list[list[Placed]]:
    """Groups of endpoints that are one communicator, by rank. Empty if no place in them tells all apart, or if several
    tell different things."""
    members = sorted(memory)
    if len({each.pid for each in members}) < thresholds.PROCESSES_FIT:
        return []
    found = {tuple(map(tuple, groups)): groups for groups in _told(members, memory)}
    return [list(group) for group in found.popitem()[1]] if len(found) == 1 else []


def _told(members: Sequence[Member], memory: Mapping[Member, Candidates]) -> Iterator[list[list[Placed]]]:
    """Groups by each place that all of them have, whose word tells communicators apart."""
    by_place = [{row["place"]: row for row in memory[member]} for member in members]
    for place in sorted(set.intersection(*map(set, by_place))):
        groups: defaultdict[int, list[Placed]] = defaultdict(list)
        for member, rows in zip(members, by_place, strict=True):
            row = rows[place]
            groups[int(row["hash"])].append(Placed(member, int(row["rank"]), int(row["size"])))
        if all(map(_fits, groups.values())):
            yield sorted(sorted(group, key=lambda each: each.rank) for group in groups.values())


def _fits(group: Sequence[Placed]) -> bool:
    """Whether they can be the ranks of one communicator: several, each of another process and with another number."""
    size = group[0].size
    return (
        1 < len(group) <= size
        and all(each.size == size for each in group)
        and len({each.rank for each in group}) == len({each.member.pid for each in group}) == len(group)
    )
