"""Waits for locks: which lock, who waits, who has it. Beside the measure of wake-ups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .protocol import Measure


@dataclass(frozen=True)
class Locks(Measure):
    """Locks of programs and of the kernel. Needs `WakeUp` in the same trace."""

    name: ClassVar[str] = "locks"


@dataclass(frozen=True)
class Gil(Measure):
    """Python's interpreter lock. Users do not ask for it: an engine that can adds it to waits, another shows the
    rest."""

    name: ClassVar[str] = "gil"
