"""Names of code that was made at run time, from the maps that JIT compilers write: only those that can be trusted are
read, within limits (`symbols.perfmap`)."""

from __future__ import annotations

import time

from ....converters.model import Frame
from ...symbols.perfmap import jit_frame
from ...symbols.process import ProcessSpaces

_MOST = 1 << 14
"""Processes that are known at a time."""
_AGAIN = 1.0
"""Seconds until a map is read again for an address that it did not have."""


class JitNames:
    """Names of code made at run time, of all processes of a trace."""

    def __init__(self) -> None:
        self._spaces = ProcessSpaces()
        self._read: dict[int, float] = {}
        """Time when the map of each process was read; CLOCK_MONOTONIC s."""

    @property
    def lost(self) -> dict[str, int]:
        """Numbers of what was left out, by what it was."""
        return {what: number for what, number in self._spaces.lost.items() if number}

    def begins(self, pid: int) -> None:
        """A process is there, or has executed another program: its user and root are looked at while they can be."""
        self._read.pop(pid, None)
        self._spaces.exec(pid)
        while len(self._spaces.processes) > _MOST:
            self.ends(next(iter(self._spaces.processes)))

    def ends(self, pid: int) -> None:
        """A process has ended: nothing of it is kept."""
        self._read.pop(pid, None)
        if number := self._spaces.replace(pid, 0):
            self._spaces.drop(number)

    def frame(self, pid: int, address: int) -> Frame | None:
        """Frame of the code at an address; None where the process's user tells no name."""
        process = self._spaces.processes.get(pid)
        if process is None:
            self.begins(pid)
            process = self._spaces.processes[pid]
        name = process.perf_map.name_at(address) if process.perf_map else None
        now = time.monotonic()
        if name is None and now >= self._read.get(pid, now - _AGAIN) + _AGAIN:
            self._read[pid] = now
            found = self._spaces.jit_map(process)
            name = found.name_at(address) if found else None
        return None if name is None else jit_frame(name, 0)

    def close(self) -> None:
        self._spaces.close()
