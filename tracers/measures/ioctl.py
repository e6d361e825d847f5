"""Calls of ioctl(2): which, on which device, how long, whether they failed, and what the thread did meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...converters.model import ValueType
from .protocol import Measure
from .span_options import SpanOptions


@dataclass(frozen=True, kw_only=True)
class Ioctl(Measure):
    """Columns: time inside ioctls, and how many returned."""

    name: ClassVar[str] = "ioctl"
    alone: bool = True
    """Whether all ioctls have rows of their own. If not, the time of those in functions' calls is in the rows of
    `Calls`; it is no error then if the kernel does not report them."""
    spans: SpanOptions | None = None
    """Choice of the calls that are kept one by one, for a timeline; None: none."""

    @property
    def columns(self) -> tuple[ValueType, ...]:
        return (ValueType("ioctl" if self.alone else "calls", "nanoseconds"), ValueType("calls", "count"))
