"""A condition as data: comparisons, and what joins them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .words import PROCESS

Operator: TypeAlias = Literal[">", ">=", "<", "<=", "==", "!="]


@dataclass(frozen=True)
class Quantity:
    """Quantity of some threads of a process."""

    word: str
    """One of `words.QUANTITIES`."""
    threads: str = PROCESS
    """Threads that are meant: `MAIN`, `WORKERS`, `PROCESS` (all); with ``is_pattern`` those with such names."""
    is_pattern: bool = False

    def __str__(self) -> str:
        if self.threads == PROCESS and not self.is_pattern:
            return self.word
        return f"{self.word}('{self.threads}')" if self.is_pattern else f"{self.word}({self.threads})"


@dataclass(frozen=True)
class Value:
    """Number that a quantity is compared with."""

    number: float
    """A fraction of 1, ns, or a plain number, as ``unit`` says."""
    unit: Literal["%", "ns", ""]


@dataclass(frozen=True)
class Comparison:
    """Comparison of a quantity with a value."""

    quantity: Quantity
    operator: Operator
    value: Value


@dataclass(frozen=True)
class TextComparison:
    """Comparison of the verdict's kind, or of the name of the process (with a pattern)."""

    word: Literal["verdict", "name"]
    is_equal: bool
    text: str


@dataclass(frozen=True)
class Not:
    """Negation."""

    of: Condition


@dataclass(frozen=True)
class Joined:
    """Conditions of which all, or any, have to hold."""

    how: Literal["and", "or"]
    parts: tuple[Condition, ...]


Condition: TypeAlias = "Comparison | TextComparison | Not | Joined"
"""Condition that holds for a process, or does not."""
