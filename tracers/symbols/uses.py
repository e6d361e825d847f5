"""Number of uses of a pid."""

from __future__ import annotations

import mmap
from typing import Protocol

_PIDS = 1 << 23
"""Twice PID_MAX_LIMIT of include/linux/threads.h."""


class _Process(Protocol):
    pid: int
    life: int


class Uses:
    """Number of processes that have had each pid; small for as many as a kernel allows."""

    def __init__(self) -> None:
        self._memory: mmap.mmap | None = None
        self._count = memoryview(b"")

    def of(self, pid: int) -> int:
        """Number of processes with this pid that have ended."""
        return self._count[pid] if pid < len(self._count) else 0

    def ended(self, process: _Process) -> None:
        """Notes that this process has ended, or is forgotten."""
        if self._memory is None:
            # Pages of it are taken when they are used.
            self._memory = mmap.mmap(-1, _PIDS * 4)
            self._count = memoryview(self._memory).cast("I")
        if process.pid < _PIDS:
            self._count[process.pid] = max(process.life, self._count[process.pid])
