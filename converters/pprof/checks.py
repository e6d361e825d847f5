"""Checks of values that were read from JSON. Each raises ValueError for what the writer does not write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from ..model.call_ioctls import CallIoctls
from ..model.collectives import Watched
from ..model.copies import Copies
from ..model.neighbours import Neighbour
from ..model.pressure import CoreThread, Interrupts, Pressure

MOST = 1 << 64
"""Numbers stay below this: what is divided fits into a float."""

Flat = TypeVar("Flat", CallIoctls, Copies, Neighbour, Pressure, Interrupts, CoreThread, Watched)
"""Dataclasses whose fields are texts, numbers and truth values."""


def flat(kind: type[Flat], entry: Any) -> Flat:
    """An object with fields that are texts, truth values and numbers. Those that have a default may be missing."""
    types = {field.name: field.type for field in fields(kind)}
    needed = {field.name for field in fields(kind) if field.default is MISSING}
    require(isinstance(entry, dict) and needed <= entry.keys() <= types.keys(), "what calls made")
    read: dict[str, Callable[[Any], Any]] = {"str": text, "bool": truth, "int": figure}
    return kind(**{name: read[str(types[name])](value) for name, value in entry.items()})


def counts(value: Any) -> dict[str, int]:
    """Numbers by name."""
    require(isinstance(value, dict), "object expected")
    return {key: integer(count) for key, count in value.items()}


def listed(value: Any) -> list[Any]:
    """A list."""
    require(isinstance(value, list), "list expected")
    return list(value)


def text(value: Any) -> str:
    """A text."""
    require(isinstance(value, str), "text expected")
    return str(value)


def integer(value: Any) -> int:
    """An integer; a truth value is one."""
    require(isinstance(value, int), "integer expected")
    return int(value)


def figure(value: Any) -> int:
    """A number from 0 to `MOST`, no truth value."""
    require(isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST, "figure expected")
    return int(value)


def truth(value: Any) -> bool:
    """A truth value."""
    require(isinstance(value, bool), "truth value expected")
    return bool(value)


def require(condition: bool, what: str) -> None:
    """Raises ValueError with ``what`` unless ``condition`` holds."""
    if not condition:
        raise ValueError(what)
