"""Definition of a target of the fuzzing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from fuzz_mutators import Mutator, havoc
from stallscope.converters.base.errors import StallscopeError


class Target(NamedTuple):
    """One parser. ``run`` gets any bytes; only ``allowed`` may come out, soon, and without much memory."""

    name: str
    run: Callable[[bytes], object]
    seeds: Callable[[], Sequence[bytes]]
    """Inputs that the parser understands."""
    mutate: Mutator = havoc
    allowed: tuple[type[Exception], ...] = ()
    share: float = 1.0
    """Part of the time, compared with others."""


def refused(error: StallscopeError) -> None:
    """An error for users has a cause of one line."""
    if not error.cause or "\n" in error.cause:
        raise AssertionError(f"no cause in one line: {error.cause!r}") from error
