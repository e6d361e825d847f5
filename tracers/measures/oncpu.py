"""On-CPU samples: what a thread executes when a clock or a hardware counter interrupts it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ...converters.model import ValueType
from ..kernel.sampled_events import CLOCK
from .protocol import Measure


@dataclass(frozen=True)
class OnCpu(Measure):
    """Columns: with the clock, time and samples; with another event, its count and samples.

    With the clock, the samples only give the shares of a thread's time: the time itself is the scheduler's, and exact.
    """

    name: ClassVar[str] = "oncpu"
    frequency: int = 99
    """Samples per second and core."""
    event: str = CLOCK
    """A key of `kernel.sampled_events.EVENTS`."""
    time: str = field(default="on-cpu", kw_only=True)
    """The name of the time column; columns of this name of other measures are added to it."""
    one_by_one: bool = field(default=False, kw_only=True)
    """A timeline records the samples of the clock with their times, too."""

    @property
    def by_clock(self) -> bool:
        """Whether samples are of time."""
        return self.event == CLOCK

    @property
    def columns(self) -> tuple[ValueType, ...]:
        weight = ValueType(self.time, "nanoseconds") if self.by_clock else ValueType(self.event, "count")
        return (weight, ValueType("samples", "count"))
