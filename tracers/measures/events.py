"""Events that the user named, counted by thread and stack: entries of functions, USDT probes, places of the kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ...converters.model import ValueType
from .protocol import Measure

if TYPE_CHECKING:
    from ..expressions.asked import Asked
    from ..probe_targets.events import Chosen
    from ..probe_targets.events import Events as Wanted
    from .questions import Binder, Compile, Line


@dataclass(frozen=True)
class Events(Measure):
    """Column: how often."""

    name: ClassVar[str] = "events"
    wanted: Wanted
    chosen: Chosen
    """Choice of the user among what the kernel has."""

    @property
    def columns(self) -> tuple[ValueType, ...]:
        return (ValueType("events", "count"),)


@dataclass(frozen=True, kw_only=True)
class AskedEvents(Events):
    """Events that are counted if --where is true of them."""

    asked: Asked
    compiler: Compile
    show: Callable[[str, Line], None]
    """Gets the name of the event and what --print says of it."""
    binder: Binder | None = None
    """None if the questions mean the same for every function."""
