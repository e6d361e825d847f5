"""Execs: finds the address space of a process that a wait belongs to."""

from __future__ import annotations

import bisect
from collections.abc import Set

from ...kernel.records import ExecRecord


class Epochs:
    """Which address space (epoch of `ProcessSpaces`) a wait's ``execs`` means.

    The probes count execs from when they first see a thread, the process events from when they first see the process;
    the times of the execs match the two.
    """

    def __init__(self) -> None:
        self._seen: dict[int, list[int]] = {}
        self._counted: dict[tuple[int, int], int] = {}

    def seen(self, pid: int, when: int) -> None:
        """The process events reported an exec."""
        self._seen.setdefault(pid, []).append(when)

    def forked(self, pid: int) -> None:
        """A process began: forgets the execs of an earlier process with this pid."""
        self._seen.pop(pid, None)

    def forget(self, pids: Set[int]) -> None:
        """Forgets processes that are gone."""
        for pid in pids:
            self._seen.pop(pid, None)
        self._counted = {key: time for key, time in self._counted.items() if key[0] not in pids}

    def counted(self, record: ExecRecord) -> None:
        """The probes reported an exec: a moment after the process events did."""
        self._counted[record.tgid, record.execs] = record.time

    def epoch(self, pid: int, execs: int) -> int:
        """The epoch; -1, which no process has, when the exec's record was lost."""
        if not execs:
            return 0
        when = self._counted.get((pid, execs))
        return -1 if when is None else bisect.bisect(self._seen.get(pid, []), when)
