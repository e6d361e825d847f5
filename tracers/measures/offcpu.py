"""Off-CPU time: each interval between a thread's switch-out and its switch-in, blocked or waiting for a core."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ...converters.model import ValueType
from .protocol import Measure

FOREVER = (1 << 64) - 1


@dataclass(frozen=True)
class OffCpu(Measure):
    """Columns: time, count, min and max of intervals."""

    name: ClassVar[str] = "offcpu"
    shortest: int = 0
    """ns; shorter intervals do not count."""
    longest: int = FOREVER
    states: frozenset[str] | None = None
    """States whose parts of intervals count; None: all. See `converters.model.states`."""
    time: str = field(default="off-cpu", kw_only=True)
    """The name of the time column; columns of this name of other measures are added to it."""

    slice: int = field(default=0, kw_only=True)
    """ns of a slice of the trace, at first; times are also known by slices. 0: they are not."""
    creations: bool = field(default=False, kw_only=True)
    """The stacks of those who create threads are taken, too."""

    @property
    def columns(self) -> tuple[ValueType, ...]:
        return (
            ValueType(self.time, "nanoseconds"),
            ValueType("count", "count"),
            ValueType("min", "nanoseconds", "min"),
            ValueType("max", "nanoseconds", "max"),
        )
