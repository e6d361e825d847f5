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

    Words = NDArray[np.uint64]

_POINTERS = 48
"""Bits of addresses of user space: a hash has more, unless it is one of 65,536."""


class Placed(NamedTuple):
    """A communicator's endpoint, and what its memory tells."""

    member: Member
    rank: int
    size: int


def placed(memory: Mapping[Member, bytes]) -> list[list[Placed]]:
    """Groups of endpoints that are one communicator, by rank. ``memory``: the first bytes of each, equally many. Empty
    if no place in them tells all apart, or if several tell different things."""
    import numpy as np

    members = sorted(memory)
    if len({each.pid for each in members}) < thresholds.PROCESSES_FIT or not all(memory.values()):
        return []
    words = np.stack([np.frombuffer(memory[each], np.uint64) for each in members])
    found = {tuple(map(tuple, groups)): groups for groups in _told(members, words)}
    return [list(group) for group in found.popitem()[1]] if len(found) == 1 else []


def _told(members: Sequence[Member], words: Words) -> Iterator[list[list[Placed]]]:
    """What each place says: a word that looks like a hash tells communicators apart, and the rank and the number of
    ranks are behind it."""
    import numpy as np

    halves = words.view(np.int32)
    for column in np.flatnonzero((words[:, :-1] >> np.uint64(_POINTERS) != 0).all(axis=0)).tolist():
        groups: defaultdict[int, list[Placed]] = defaultdict(list)
        for i, member in enumerate(members):
            rank, size = halves[i, 2 * column + 2 : 2 * column + 4].tolist()
            groups[int(words[i, column])].append(Placed(member, rank, size))
        if all(map(_fits, groups.values())):
            yield sorted(sorted(group, key=lambda each: each.rank) for group in groups.values())


def _fits(group: Sequence[Placed]) -> bool:
    """Whether they can be the ranks of one communicator: several, each of another process and with another number."""
    size = group[0].size
    return (
        1 < len(group) <= size <= thresholds.MOST_RANKS
        and all(each.size == size and 0 <= each.rank < size for each in group)
        and len({each.rank for each in group}) == len({each.member.pid for each in group}) == len(group)
    )
