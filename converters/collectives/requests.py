"""Operations of MPI that a call begins and another one completes: a handle joins both (MPI 4.1, 3.7 and 6.12).

A handle is used again for another operation, but only after its own one is done. So the last call that is given a
handle before it is made again is the one that has completed it: what is done is taken out of the program's lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from .records import ARGUMENTS, NO_WAIT, OPEN, CallTable
from .signatures import COMPLETES, Signature, signature_of

if TYPE_CHECKING:
    from .records import Array

FIRST = 3
"""Argument instead of which the first handles are kept: FIRST_REQUEST of bpf/include/call_arguments.bpf.h."""
_MOST = 4096
"""Handles of one call that are looked at."""
_INT = 0xFFFFFFFF


def completed(table: CallTable) -> CallTable:
    """The table with operations that a call only begins, which end when they are done (`OPEN`: they are not). Their
    ``waits`` are the begin of the call that completes them, or `NO_WAIT`; 0 of other calls."""
    import numpy as np

    known = [signature_of(name) for name in table.names]
    begins = [number for number, of in enumerate(known) if of and of.request >= 0]
    if not np.isin(table.calls["function"], begins).any():
        return table
    calls = table.calls.copy()
    joins: dict[int, _Join] = {}
    events = sorted(_events(table.calls, known))
    for _, row in events:
        of, pid = known[table.calls["function"][row]], int(table.calls["pid"][row])
        assert of
        join = joins.setdefault(pid, _Join(_has_addresses(table, known, pid)))
        if of.kind == COMPLETES:
            join.complete(of, row, table.calls[row]["arguments"].tolist())
        else:
            join.begin(row, int(table.calls["made"][row]), int(table.calls["arguments"][row, of.request]))
    for join in joins.values():
        for row, by in join.completed.items():
            calls["ended"][row], calls["waits"][row] = (
                (table.calls["ended"][by], table.calls["began"][by])
                if by >= 0
                else (table.calls["ended"][row] if row in join.again else OPEN, NO_WAIT)
            )
    return replace(table, calls=calls)


def _events(calls: Array, known: list[Signature | None]) -> Iterator[tuple[int, int]]:
    """Times and rows: calls that begin operations when they return, others when they begin."""
    for row, function in enumerate(calls["function"].tolist()):
        of = known[function]
        if of and of.kind == COMPLETES:
            yield int(calls["began"][row]), row
        elif of and of.request >= 0 and calls["ended"][row] != OPEN:
            yield int(calls["ended"][row]), row


def _has_addresses(table: CallTable, known: list[Signature | None], pid: int) -> bool:
    """Whether handles are addresses, as in Open MPI; else they are numbers of 32 bits, as in MPICH."""
    for number, of in enumerate(known):
        if of and of.request >= 0:
            mine = (table.calls["function"] == number) & (table.calls["pid"] == pid)
            if mine.any():
                return bool((table.calls["arguments"][mine, of.comm] >> 32).any())
    return True


class _Join:
    """Operations of one process. ``completed``: rows of calls that complete them, by their rows, -1: none is known;
    ``again``: those whose handles were made again."""

    def __init__(self, has_addresses: bool) -> None:
        self.completed: dict[int, int] = {}
        self.again: set[int] = set()
        self._width = 8 if has_addresses else 4
        self._by_handle: dict[int, int] = {}
        self._by_place: dict[int, int] = {}

    def begin(self, row: int, handle: int, place: int) -> None:
        handle = handle if self._width == 8 else handle & _INT
        if handle in self._by_handle:
            self.again.add(self._by_handle[handle])
        self._by_handle[handle] = self._by_place[place] = row
        self.completed[row] = -1

    def complete(self, of: Signature, row: int, arguments: list[int]) -> None:
        number = min(arguments[0] & _INT, _MOST) if of.requests else 1
        handles = arguments[FIRST:ARGUMENTS]
        if self._width == 4:
            handles = [half for each in handles for half in (each & _INT, each >> 32)]
        for handle in handles[:number]:
            if handle in self._by_handle:
                self.completed[self._by_handle[handle]] = row
        # Handles that were not kept are known by where they are, as long as no other one was put there.
        for at in range(len(handles), number):
            found = self._by_place.get(arguments[of.requests] + at * self._width)
            if found is not None and found not in self.again:
                self.completed[found] = row
