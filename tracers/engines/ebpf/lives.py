"""Tells threads and processes apart whose ids came back, and programs of a process before and after an exec.

A probe's row has the ids of its thread, and the number of the thread's life since its last exec. The times of lives,
and those of forks and execs from the process events, say which process and which of its address spaces a row is of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from ...kernel.records import ExecRecord, Origin, ThreadRecord
from ...symbols.process import ProcessSpaces
from ..rows import Row, Timed

_Part = TypeVar("_Part")
_LOST = -1
"""An epoch that no process has."""


class Lives:
    """The lives of a trace, or of an interval of one."""

    def __init__(self, threads: Iterable[ThreadRecord], execs: Iterable[ExecRecord], spaces: ProcessSpaces) -> None:
        self.threads: dict[int, int] = {}
        """The thread of each life, by its first one."""
        self._spaces = spaces
        self._lived: dict[int, int] = {}
        self._tgids: dict[int, int] = {}
        for record in execs:
            self._add(record.life, record.first, record.lived, record.tgid)
        for thread in (record.thread for record in threads):
            self._add(thread.key.life, thread.first, thread.lived, thread.key.tgid)

    def _add(self, life: int, first: int, lived: int, tgid: int) -> None:
        self.threads[life], self._lived[life], self._tgids[life] = first, lived, tgid

    def first(self, life: int) -> int:
        """The first life of the thread; -1: nothing is known of it."""
        return self.threads.get(life, -1)

    def numbered(self, origin: Origin) -> Origin:
        """``tgid`` as the number of a process, see `ProcessSpaces`. Of an unknown life: that has the pid now."""
        lived = self._lived.get(origin.life)
        number = origin.tgid if lived is None else self._spaces.number(origin.tgid, lived)
        return origin if number == origin.tgid else origin._replace(tgid=number)

    def rows(self, rows: Iterable[Row]) -> list[Row]:
        """Rows with numbers of processes instead of pids."""
        if not self._spaces.came_back:
            return list(rows)
        return [row._replace(origin=self.numbered(row.origin)) for row in rows]

    def timed(self, calls: Iterable[Timed]) -> list[Timed]:
        """Timed calls with numbers of processes instead of pids."""
        if not self._spaces.came_back:
            return list(calls)
        return [each._replace(origin=self.numbered(each.origin)) for each in calls]

    def made(self, parts: Iterable[tuple[Origin, _Part]]) -> list[tuple[Origin, _Part]]:
        """Parts of calls with numbers of processes instead of pids."""
        return [(self.numbered(origin), part) for origin, part in parts]

    def records(self, threads: Iterable[ThreadRecord]) -> list[ThreadRecord]:
        """Records of threads with numbers of processes instead of pids."""
        if not self._spaces.came_back:
            return list(threads)
        return [
            record._replace(thread=record.thread._replace(key=self.numbered(record.thread.key))) for record in threads
        ]

    def epoch(self, origin: Origin) -> int:
        """The epoch of the address space of a row, whose process has a number; -1 when the life's record was lost and
        the process has had several."""
        lived = self._lived.get(origin.life)
        if lived is not None:
            return self._spaces.epoch(origin.tgid, lived)
        return _LOST if self._spaces.epoch(origin.tgid, _FOREVER) else 0

    def alike(self) -> Mapping[int, int]:
        """Map from each life to one of the same address space."""
        first: dict[tuple[int, int], int] = {}
        found = {}
        for life, lived in self._lived.items():
            tgid = self._tgids[life]
            number = self._spaces.number(tgid, lived)
            found[life] = first.setdefault((number, self._spaces.epoch(number, lived)), life)
        return found


_FOREVER = 1 << 63
