"""Calls that only stand in the queue of their stream, behind one of another communicator that is not done.

A stream's operations are done in order ("Streams", CUDA's programming guide): the rank has called such an operation,
but is not in it. Two ranks that call those of two communicators in different orders wait for each other for ever.
What is done is not known of calls for which nothing has waited yet: a meeting to which all ranks have come is done as
soon as it is the first one in the streams of all of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .communicators import Communicator
from .meetings import Meetings
from .records import OPEN, CallTable
from .signatures import NCCL, WAITS, signature_of

_Stream = tuple[int, int]
"""Process and stream."""
_Meeting = tuple[int, int]
"""Numbers of a communicator and of a meeting of it."""


class _Call(NamedTuple):
    began: int
    row: int
    of: _Meeting
    for_all: bool
    """See `Calls.for_all`."""


class _Wait(NamedTuple):
    began: int
    stream: int | None
    """None: for all of its device."""


def queued(table: CallTable, found: Sequence[Communicator], joined: Sequence[Meetings]) -> frozenset[int]:
    """Rows of such calls when the trace ended, of processes that wait for them. ``joined``: meetings of each
    communicator."""
    waits = _open_waits(table)
    if not waits:
        return frozenset()
    behind: set[int] = set()
    for (pid, stream), (first, *others) in _stuck(table, found, joined).items():
        if any(each.began > first.began and each.stream in (None, stream) for each in waits[pid]):
            behind.update(each.row for each in others if each.of[0] != first.of[0])
    return frozenset(behind)


def _open_waits(table: CallTable) -> defaultdict[int, list[_Wait]]:
    """Waits that go on when the trace ends, by process."""
    found: defaultdict[int, list[_Wait]] = defaultdict(list)
    for number, name in enumerate(table.names):
        of = signature_of(name)
        if of and of.kind == WAITS:
            for call in table.calls[(table.calls["function"] == number) & (table.calls["ended"] == OPEN)]:
                stream = int(call["arguments"][of.stream]) if of.stream >= 0 else None
                found[int(call["pid"])].append(_Wait(int(call["began"]), stream))
    return found


def _stuck(table: CallTable, found: Sequence[Communicator], joined: Sequence[Meetings]) -> dict[_Stream, list[_Call]]:
    """Calls that cannot be done, in the order of their streams: the first one of each is in a meeting that lacks ranks,
    or that stands behind such a call in the stream of another rank."""
    queues: defaultdict[_Stream, list[_Call]] = defaultdict(list)
    for number, communicator in enumerate(found):
        for stream, call in _undone(table, communicator, joined[number], number):
            queues[stream].append(call)
    for calls in queues.values():
        calls.sort(reverse=True)
    missing = Counter(call.of for calls in queues.values() for call in calls)
    fails = [each.fails().tolist() for each in joined]
    heads: defaultdict[_Meeting, list[_Stream]] = defaultdict(list)
    edge = list(queues)
    while edge:
        stream = edge.pop()
        if not queues[stream] or fails[(of := queues[stream][-1].of)[0]][of[1]]:
            continue
        heads[of].append(stream)
        if len(heads[of]) == missing[of] or not queues[stream][-1].for_all:
            for each in heads.pop(of):
                queues[each].pop()
                edge.append(each)
    return {stream: calls[::-1] for stream, calls in queues.items() if calls}


def _undone(table: CallTable, of: Communicator, joined: Meetings, number: int) -> Iterator[tuple[_Stream, _Call]]:
    """Calls that have returned, and that are not known to be done. Those of a process with several ranks are left out:
    each of its devices has a default stream, and all of these have one number."""
    ranks = Counter(member.pid for member in of.members)
    for column, (member, calls) in enumerate(zip(of.members, of.calls, strict=True)):
        if member.library != NCCL or ranks[member.pid] > 1:
            continue
        begin = joined.begin(column)
        for place in np.flatnonzero((calls.done == OPEN) & (calls.ended != OPEN)).tolist():
            row = member.rows[place]
            signature = signature_of(table.names[table.calls["function"][row]])
            assert signature
            stream = int(table.calls["arguments"][row, signature.stream])
            meeting = number, begin + place
            yield (member.pid, stream), _Call(int(calls.began[place]), row, meeting, bool(calls.for_all[place]))
