"""Wake-ups: who ended the waits of a thread, and who had ended that one's own waits meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ...converters.model import ValueType
from .offcpu import FOREVER
from .protocol import Measure

MAX_DEPTH = 16
"""MAX_WAKERS of bpf/include/records.h."""


@dataclass(frozen=True)
class WakeUp(Measure):
    """Columns: the time that threads were blocked; if it is ``alone``, count, min and max, too.

    The rows of a wait share its time: one with the first links of its chain has the part in which the last of these
    did not wait itself.
    """

    name: ClassVar[str] = "wakeup"
    depth: int = 1
    """Links of a chain at most."""
    shortest: int = 0
    """ns; shorter waits do not count."""
    longest: int = FOREVER
    states: frozenset[str] | None = None
    """States whose waits count; None: all."""
    alone: bool = field(default=True, kw_only=True)
    """No other measure of the trace counts waits."""

    @property
    def columns(self) -> tuple[ValueType, ...]:
        counted = (
            ValueType("count", "count"),
            ValueType("min", "nanoseconds", "min"),
            ValueType("max", "nanoseconds", "max"),
        )
        return (ValueType("blocked", "nanoseconds"), *(counted if self.alone else ()))
