"""Calls of functions: which, how long, whether they failed, and what the thread did meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from ...converters.model import ValueType
from ..probe_targets.wanted import Wanted
from .argument_options import ArgumentOptions
from .protocol import Measure
from .span_options import SpanOptions

if TYPE_CHECKING:
    from ..expressions.asked import Asked
    from .questions import Binder, Compile, Line


@dataclass(frozen=True)
class Calls(Measure):
    """Columns: time inside calls, and how many returned. Time is counted for the innermost call.

    Ioctls in the calls are parts of them if `Ioctl` is in the same trace, and not alone."""

    name: ClassVar[str] = "calls"
    wanted: Wanted = field(default_factory=Wanted)
    """Functions of libraries and programs."""
    spans: SpanOptions | None = field(default=None, kw_only=True)
    """Choice of the calls that are kept one by one, for a timeline; None: none."""
    arguments: ArgumentOptions | None = field(default=None, kw_only=True)
    """Choice of the calls of communication libraries that are kept with their arguments; None: none."""
    over: int = field(default=0, kw_only=True)
    """Time in ns that a call has to exceed to count; 0: all count."""

    @property
    def columns(self) -> tuple[ValueType, ...]:
        return (ValueType("calls", "nanoseconds"), ValueType("calls", "count"))


@dataclass(frozen=True, kw_only=True)
class AskedCalls(Calls):
    """Calls that are timed and counted if --where is true of them."""

    asked: Asked
    compiler: Compile
    show: Callable[[str, Line], None]
    """Gets the name of the function and what --print says of a call."""
    binder: Binder | None = None
    """None if the questions mean the same for every function."""


@dataclass(frozen=True)
class KernelCalls(Measure):
    """Calls of the kernel's own functions. Columns like those of `Calls`."""

    name: ClassVar[str] = "kernel_calls"
    functions: Sequence[str]
    """Names, of which the kernel may refuse some."""

    @property
    def columns(self) -> tuple[ValueType, ...]:
        return (ValueType("kernel-calls", "nanoseconds"), ValueType("calls", "count"))
