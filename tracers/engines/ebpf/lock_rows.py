"""Counts of locks that the measures of a trace have: names come later, see `locks`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from .lives import Lives
from .measures.protocol import Collector, Ended, GilWait, LockRows, LockWait

_Wait = TypeVar("_Wait", LockWait, GilWait)


def lock_rows(collectors: Sequence[Collector], ended: Ended, lives: Lives, ours: set[int]) -> LockRows | None:
    """Counts of locks that the measures have, with numbers of processes, without our own ones; None if they have
    nothing."""
    found = next((each for collector in collectors if (each := collector.locks(ended))), None)
    gil = [wait for collector in collectors for wait in collector.gil(ended)]
    if found is None and not gil:
        return None
    found = found or LockRows()
    return replace(found, waits=_numbered(found.waits, lives, ours), gil=_numbered(gil, lives, ours))


def _numbered(waits: Iterable[_Wait], lives: Lives, ours: set[int]) -> list[_Wait]:
    return [wait._replace(row=row) for wait in waits for row in lives.rows([wait.row]) if row.origin.tgid not in ours]
