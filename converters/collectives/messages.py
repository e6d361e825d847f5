"""Messages between two ranks: each receive joined with its send, and who waited for whom.

Messages from one rank to another one with the same tag arrive in the order in which they were sent (MPI 4.1, 3.5; NCCL:
"Point-to-point communication"). So the n-th send and the n-th receive of a pair are one message, if the trace has seen
the communicator from its beginning. If it has not, some of the first ones are missing on one side: no message is
received before it is sent, and a call that waits does so until the other side comes, which tells how many.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..facts import thresholds
from ..model.collectives import UNKNOWN, MessagePair
from .operations import bytes_of
from .records import OPEN, CallTable
from .signatures import MPI, POINT_TO_POINT, RECEIVE, SEND, Signature, halves, signature_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .communicators import Communicator
    from .meetings import Calls

    Times = NDArray[np.int64]
    _Place = tuple[int, int]
    """Member and number of its message."""

_LATE = 1 << 62
"""Time of what has not happened."""
_ANY_TAG = -1
"""MPI_ANY_TAG of the mpi.h of Open MPI and of MPICH."""
_ANY_SOURCE, _NO_ONE = -1, -2
"""MPI_ANY_SOURCE and MPI_PROC_NULL of Open MPI's mpi.h; in MPICH's, they are the other way round."""


class Joined(NamedTuple):
    """The messages of a communicator: see `model.collectives.Messages`."""

    pairs: list[MessagePair]
    any_source: int
    unseen: int


@dataclass
class _Stream:
    """Messages of one pair of ranks with one tag, in order."""

    sends: list[_Place] = field(default_factory=list)
    receives: list[_Place] = field(default_factory=list)


class _Part(NamedTuple):
    """One side of the messages of a stream. Times: `_LATE` for what has not happened."""

    began: Times
    waits: Times
    """Begin of the wait; `_LATE`: none is known."""
    done: Times


class _Told(NamedTuple):
    """Fields of a `MessagePair`."""

    messages: int = 0
    bytes: int = 0
    waits: int = 0
    receiver_waited: int = 0
    sender_waited: int = 0
    unjoined: int = 0


def messages(table: CallTable, of: Communicator, end: int) -> Joined | None:
    """Messages of a communicator; None if there are none, or if its ranks are not known. ``end``: that of the trace."""
    if not of.messages:
        return None
    found = _Streams(table, of)
    parts: dict[tuple[int, int], list[_Told]] = defaultdict(list)
    for (sender, receiver, _), stream in found.streams.items():
        sends, receives = _part(of.messages, stream.sends), _part(of.messages, stream.receives)
        sizes = [found.bytes_of(*place) for place in stream.sends]
        is_sure = receiver not in found.unsure
        first = (0 if of.is_whole else _first(sends, receives)) if is_sure else None
        parts[sender, receiver].append(_told(sends, receives, sizes, first, end))
    pairs = [MessagePair(*ranks, *_sum(each)) for ranks, each in parts.items()]
    pairs.sort(key=lambda each: (-each.receiver_waited - each.sender_waited, each.sender, each.receiver))
    return Joined(pairs, found.any_source, found.unseen)


class _Streams:
    """Sends and receives of all members, by sender, receiver and tag. ``unsure``: receivers that have taken messages of
    which nobody knows whose they were: which of the others are which is not known, either."""

    def __init__(self, table: CallTable, of: Communicator) -> None:
        self._table, self._of = table, of
        self._bytes: dict[int, int] = {}
        self._columns = {member.rank: column for column, member in enumerate(of.members)}
        self.streams: defaultdict[tuple[int, int, int], _Stream] = defaultdict(_Stream)
        self.unsure: set[int] = set()
        self.any_source = self.unseen = 0
        known = [signature_of(name) for name in table.names]
        for column, member in enumerate(of.members):
            for number, row in enumerate(member.messages):
                signature = known[table.calls["function"][row]]
                if signature and signature.kind == POINT_TO_POINT:
                    for half in halves(signature):
                        self._add(half, column, number, row)

    def bytes_of(self, column: int, number: int) -> int:
        """Bytes of a message that is sent; `UNKNOWN` if they are not known."""
        what = int(self._of.messages[column].what[number])
        if what not in self._bytes:
            call = self._table.calls[self._of.members[column].messages[number]]
            signature = signature_of(self._table.names[call["function"]])
            self._bytes[what] = bytes_of(self._table, call, signature) if signature else UNKNOWN
        return self._bytes[what]

    def _add(self, half: Signature, column: int, number: int, row: int) -> None:
        arguments = self._table.calls["arguments"][row]
        peer = _int(arguments[half.peer])
        tag = _int(arguments[half.tag]) if half.tag >= 0 else 0
        if half.library == MPI:
            is_open_mpi = int(arguments[half.comm]) >> 32 != 0
            if peer == (_NO_ONE if is_open_mpi else _ANY_SOURCE):
                return
            if half.what == RECEIVE and (peer < 0 or tag == _ANY_TAG):
                made = int(self._table.calls["made"][row])
                has_status = half.status >= 0 and int(arguments[half.status]) > 1 and is_open_mpi
                if not has_status or self._table.calls["ended"][row] == OPEN:
                    self.any_source += 1
                    self.unsure.add(column)
                    return
                peer, tag = _int(made), _int(made >> 32)
        other = self._columns.get(peer)
        if other is None:
            self.unseen += 1
        elif half.what == SEND:
            self.streams[column, other, tag].sends.append((column, number))
        else:
            self.streams[other, column, tag].receives.append((column, number))


def _int(word: int) -> int:
    """The lower half of a word, as an int."""
    low = int(word) & 0xFFFFFFFF
    return low - (1 << 32) if low >> 31 else low


def _part(calls: tuple[Calls, ...], places: list[_Place]) -> _Part:
    """All places are of one member."""
    if not places:
        none = np.zeros(0, np.int64)
        return _Part(none, none, none)
    of = calls[places[0][0]]
    at = np.array([number for _, number in places], np.intp)
    began, done = of.began[at], of.done[at]
    waits = began if of.waits is None else of.waits[at]
    return _Part(began, np.where(waits == OPEN, _LATE, waits), np.where(done == OPEN, _LATE, done))


def _first(sends: _Part, receives: _Part) -> int | None:
    """Number of the send that belongs to the first receive, below 0 if that is one before the first; None if
    nothing tells it, or several would fit as well."""
    scores: dict[int, int] = {}
    most = thresholds.RANKS_APART
    for first in range(-min(most, len(receives.began)), min(most, len(sends.began)) + 1):
        mine, theirs = _overlap(sends, receives, first)
        if len(mine.began) < thresholds.CALLS_FIT or (mine.began > theirs.done).any():
            continue
        begins = np.maximum(np.minimum(mine.waits, mine.done), np.minimum(theirs.waits, theirs.done))
        scores[first] = int((begins <= np.minimum(mine.done, theirs.done)).sum())
    best = max(scores.values(), default=0)
    found = [first for first, score in scores.items() if score == best]
    return found[0] if len(found) == 1 and best >= thresholds.CALLS_FIT else None


def _overlap(sends: _Part, receives: _Part, first: int) -> tuple[_Part, _Part]:
    """The messages of which both parts are there."""
    begin, end = max(first, 0), max(min(len(sends.began), first + len(receives.began)), first, 0)
    return _cut(sends, begin, end), _cut(receives, begin - first, end - first)


def _cut(part: _Part, begin: int, end: int) -> _Part:
    return _Part(*(each[begin:end] for each in part))


def _told(sends: _Part, receives: _Part, sizes: list[int], first: int | None, end: int) -> _Told:
    if first is None:
        return _Told(unjoined=max(len(sends.began), len(receives.began)))
    mine, theirs = _overlap(sends, receives, first)
    of_receiver = _waited(theirs, mine.began)
    # A send that ends before the receiver comes has not waited for it.
    of_sender = np.where(mine.done >= theirs.began, _waited(mine, theirs.began), 0)
    waited = int(of_receiver.sum()) + _unsent(receives, first + len(receives.began) - len(sends.began), end)
    joined = sizes[max(first, 0) : max(first, 0) + len(mine.began)]
    return _Told(len(joined), _whole(joined), int((of_receiver > 0).sum()), waited, int(of_sender.sum()))


def _whole(sizes: list[int]) -> int:
    return UNKNOWN if UNKNOWN in sizes else sum(sizes)


def _waited(part: _Part, other: Times) -> Times:
    """ns for which one side waits for the other one, which comes at these times."""
    return np.where(part.waits == _LATE, 0, np.maximum(np.minimum(other, part.done) - part.waits, 0))


def _unsent(receives: _Part, more: int, end: int) -> int:
    """ns for which the receiver waits for the first message that is not sent yet. ``more``: receives beyond the last
    send."""
    if more <= 0 or more > len(receives.began):
        return 0
    at = len(receives.began) - more
    return max(end - int(receives.waits[at]), 0) if receives.done[at] == _LATE else 0


def _sum(parts: list[_Told]) -> _Told:
    """Messages of all tags of a pair."""
    columns = [list(each) for each in zip(*parts, strict=True)]
    return _Told(
        *(_whole(each) if name == "bytes" else sum(each) for name, each in zip(_Told._fields, columns, strict=True))
    )
