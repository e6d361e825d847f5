"""Calls that only stand in the queue of their stream, behind one of another communicator that is not done.

A stream's operations are done in order ("Streams", CUDA's programming guide): the rank has called such an operation,
but is not in it. Two ranks that call those of two communicators in different orders wait for each other for ever.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .communicators import Communicator
from .records import OPEN, CallTable
from .signatures import MPI, WAITS, signature_of

_Stream = tuple[int, int]
"""Process and stream."""


class _Call(NamedTuple):
    began: int
    row: int
    communicator: int


def queued(table: CallTable, found: Sequence[Communicator]) -> frozenset[int]:
    """Rows of such calls when the trace ended, of processes that wait for them."""
    calls: defaultdict[_Stream, list[_Call]] = defaultdict(list)
    for number, communicator in enumerate(found):
        for stream, call in _undone(table, communicator, number):
            calls[stream].append(call)
    behind: set[int] = set()
    for stream, waiting in calls.items():
        first, *others = sorted(waiting)
        if _is_waited_for(table, stream, first):
            behind.update(each.row for each in others if each.communicator != first.communicator)
    return frozenset(behind)


def _undone(table: CallTable, of: Communicator, number: int) -> Iterator[tuple[_Stream, _Call]]:
    """Calls that have returned, and that are not known to be done."""
    for member, calls in zip(of.members, of.calls, strict=True):
        if member.library == MPI:
            continue
        for place in np.flatnonzero((calls.done == OPEN) & (calls.ended != OPEN)).tolist():
            row = member.rows[place]
            signature = signature_of(table.names[table.calls["function"][row]])
            assert signature
            stream = int(table.calls["arguments"][row, signature.stream])
            yield (member.pid, stream), _Call(int(calls.began[place]), row, number)


def _is_waited_for(table: CallTable, stream: _Stream, first: _Call) -> bool:
    """Whether the process waits for all that is in this stream, or for all of its device, since after the call."""
    pid, of = stream
    for number, name in enumerate(table.names):
        signature = signature_of(name)
        if not signature or signature.kind != WAITS:
            continue
        calls = table.calls[(table.calls["function"] == number) & (table.calls["pid"] == pid)]
        fit = (calls["ended"] == OPEN) & (calls["began"] > first.began)
        if signature.stream >= 0:
            fit &= calls["arguments"][:, signature.stream] == np.uint64(of)
        if fit.any():
            return True
    return False
