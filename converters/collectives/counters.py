"""Numbers of the collectives of communicators that were there before the trace, by counters in their memory.

NCCL's communicator counts the collectives of each function that it has launched (``seqNumber`` of ``struct ncclComm``,
src/include/comm.h of NCCL from 2.23 on), on all ranks from its making on. No offset is assumed: a word is believed to
be such a counter if, whenever it was read, it was the same number more than the calls of the trace until then, and
that at the same offset on all ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..facts import thresholds
from .meetings import OPEN

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .evidence import Candidates
    from .meetings import Calls

    Words = NDArray[np.int64]

BYTES = 32 << 10
"""Bytes behind a communicator's hash that are looked at: in version 2.30, the counters stand 10,152 bytes behind it,
and the struct ends after 18,320."""
_WINDOWS = 2
_MOST = 1 << 40
"""Larger numbers count nothing that ranks meet in."""


class Count(NamedTuple):
    """Words of a communicator's memory that may be counters. Times are in ns from the beginning of the trace."""

    before: int
    """Time before they were read."""
    after: int
    words: Words
    """Offset and value of each, by offset."""


class Rank(NamedTuple):
    """A member, and what is known of its counters."""

    calls: Calls
    functions: Words
    """Number of the function of each call."""
    counts: Sequence[Count]


def windows(found: Candidates) -> list[tuple[int, int]]:
    """Offsets and sizes of what is read again and again of a communicator with these words."""
    made: list[tuple[int, int]] = []
    for place in sorted(found["place"].tolist()):
        if not made or place >= made[-1][0] + BYTES:
            made.append((place, BYTES))
    return made[:_WINDOWS]


def words(place: int, data: bytes) -> Words:
    """Words that may be a counter. ``place``: offset of the data."""
    import numpy as np

    numbers = np.frombuffer(data, "<u8", len(data) // 8)
    (at,) = np.nonzero((numbers > 0) & (numbers < _MOST))
    return np.stack([place + 8 * at, numbers[at].astype(np.int64)], axis=1)


def firsts(ranks: Sequence[Rank]) -> tuple[int, ...] | None:
    """Number of calls that each rank begins after the one with most calls. None if no counter tells, or if several tell
    different things."""
    most = max(range(len(ranks)), key=lambda place: len(ranks[place].functions))
    told = {_firsts(ranks, most, function) for function in set(ranks[most].functions.tolist())} - {None}
    return told.pop() if len(told) == 1 else None


def _firsts(ranks: Sequence[Rank], most: int, function: int) -> tuple[int, ...] | None:
    """Numbers like `firsts`, by the counter of one function."""
    import numpy as np

    numbers = _numbers(ranks, function)
    if numbers is None:
        return None
    places = [np.flatnonzero(each.functions == function) for each in ranks]
    found = []
    for its, number in zip(places, numbers, strict=True):
        both = max(number, numbers[most])
        at, its_at = both - numbers[most], both - number
        if at >= len(places[most]) or its_at >= len(its):
            return None
        found.append(int(places[most][at] - its[its_at]))
    return tuple(found)


def _numbers(ranks: Sequence[Rank], function: int) -> list[int] | None:
    """Number of calls of the function before the trace, of each rank; or one that is as much more on all of them."""
    found = [_bases(each, function) for each in ranks]
    places = set.intersection(*(set(bases) for bases in found))
    told = [[bases[place] for bases in found] for place in sorted(places)]
    apart = {tuple(number - numbers[0] for number in numbers) for numbers in told}
    return told[0] if len(apart) == 1 else None


def _bases(rank: Rank, function: int) -> dict[int, int]:
    """Calls of a function that words have counted beyond those of the trace, by the offset of each word."""
    of = rank.functions == function
    began, ended = rank.calls.began[of], rank.calls.ended[of]
    known = [(number, each.words) for each in rank.counts if (number := _until(began, ended, each)) is not None]
    numbers = {number for number, _ in known}
    if len(numbers) < thresholds.COUNTED_OFTEN or max(numbers) - min(numbers) < thresholds.COUNTED_CALLS:
        return {}
    bases: dict[int, int] = {}
    for turn, (number, found) in enumerate(known):
        more = found[:, 1] - number
        now = dict(zip(found[more >= 0, 0].tolist(), more[more >= 0].tolist(), strict=True))
        bases = now if not turn else {place: base for place, base in bases.items() if now.get(place) == base}
    return bases


def _until(began: Words, ended: Words, count: Count) -> int | None:
    """Number of calls that had returned when words were read; None if one went on: it may be counted, or not."""
    number = int((began <= count.after).sum())
    return number if number == int(((ended != OPEN) & (ended < count.before)).sum()) else None
