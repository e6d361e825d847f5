"""A measure: what a command asks for, with its options. An engine reads it, and refuses what it cannot measure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Protocol, TypeVar

from ...converters.model import ValueType


class Measure(Protocol):
    """A frozen dataclass, whose fields are the options."""

    name: ClassVar[str]
    """Name of the rows, and in messages. Measures of one name are alternatives to each other."""

    @property
    def columns(self) -> tuple[ValueType, ...]:
        """Columns of the rows' values; () without rows. Equal columns of several measures become one."""
        return ()


AnyMeasure = TypeVar("AnyMeasure", bound=Measure)


def find(measures: Iterable[Measure], kind: type[AnyMeasure]) -> AnyMeasure | None:
    """The first measure of a kind; None if there is none."""
    return next((each for each in measures if isinstance(each, kind)), None)


def columns_of(measures: Iterable[Measure]) -> tuple[ValueType, ...]:
    """The columns of all measures, each once, in order of first occurrence."""
    return tuple(dict.fromkeys(column for measure in measures for column in measure.columns))
