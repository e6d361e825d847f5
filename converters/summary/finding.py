"""What a sentence tells of: one problem of some threads."""

from __future__ import annotations

from dataclasses import dataclass

from ..facts.wait_sums import Place, Thread

CPU = "cpu"
"""The kind of a finding on running threads, not a wait."""


@dataclass(frozen=True)
class Finding:
    """One problem of some threads. Times in ns."""

    kind: str
    """Of `wait_kinds`, or `CPU`."""
    threads: tuple[Thread, ...]
    """Most time first."""
    time: int
    wall: int
    """Sum of the threads; 0 if unknown."""
    places: tuple[Place, ...] = ()
    """Places with much of the time, longest first."""
    count: int = 0
    max: int = 0
    runnable: int = 0
    """For `CPU`: the part of ``time`` spent waiting for a core."""

    most: int = 0
    """For waits: the part of ``time`` of the first thread; 0 if there is no other one."""
    samples: int = 0
    """For waits that only samples show: their number."""

    @property
    def pids(self) -> frozenset[int]:
        return frozenset(pid for pid, _ in self.threads)
