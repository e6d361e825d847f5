"""Threads' ids as their processes see them, which may be in another pid namespace."""

from __future__ import annotations

from ...base import procfs
from .capture import Capture


class InnerIds:
    """Finds out our ids of threads. A thread that has ended has none any more, if its process is in a namespace."""

    def __init__(self, capture: Capture) -> None:
        self._processes = capture.spaces.processes
        self._inside: dict[int, dict[int, int]] = {}

    def outside(self, tgid: int, tid: int) -> int:
        """The thread's id for us, given the one in its process's namespace; 0 if there is none."""
        inside = self.of(tgid)
        return inside.get(tid, 0) if inside else tid

    def of(self, tgid: int) -> dict[int, int]:
        """Thread ids, as we have them, by those that a process in another pid namespace sees; of other processes
        nothing."""
        if tgid not in self._inside:
            process = self._processes.get(tgid)
            other = process is not None and process.nspid != process.pid
            self._inside[tgid] = {procfs.innermost_id(tid): tid for tid in procfs.tids(tgid)} if other else {}
        return self._inside[tgid]
