"""Processes that were not traced."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Neighbour:
    """A process that used cores during the trace, or ended waits, and was not traced."""

    process: str
    """Name of the process, with the script that it runs (hostile)."""
    pid: int
    on_cpu: int
    """ns on cores during the trace, by the ticks of the kernel's clock."""
    cpus: str = ""
    """The cores that it may use, as in `ProcessTimes`; "" if that is not known."""
