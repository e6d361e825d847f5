"""Functions whose calls are steps: those that the user named one by one, and no others."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from .wanted import Library, Wanted, is_safe

_SUGGESTIONS = 3


class StepFunction(NamedTuple):
    """A function of a library or program."""

    library: Library
    symbol: str


@dataclass(frozen=True)
class StepFunctions(Wanted):
    """Wanted steps, as `Wanted` is for calls in general. ``libraries`` are those of ``functions``."""

    functions: tuple[StepFunction, ...] = ()
    option: ClassVar[str] = "--step"

    @classmethod
    def of(cls, functions: Iterable[StepFunction]) -> StepFunctions:
        """The functions with their libraries."""
        chosen = tuple(functions)
        return cls(libraries=tuple(dict.fromkeys(each.library for each in chosen)), functions=chosen)

    def looks_into(self, path: str, identity: tuple[int, int], *, is_program: bool) -> bool:
        return self.is_given(path, identity)

    def wants(self, name: str, path: str, identity: tuple[int, int]) -> bool:
        return is_safe(name) and self._is_named(name, path, identity)

    def is_unsafe(self, name: str, path: str, identity: tuple[int, int]) -> bool:
        return not is_safe(name) and self._is_named(name, path, identity)

    def nearest(self, names: Iterable[str]) -> list[str]:
        given = list(names)
        found = (difflib.get_close_matches(each.symbol, given, _SUGGESTIONS) for each in self.functions)
        return list(dict.fromkeys(name for close in found for name in close))[:_SUGGESTIONS]

    def _is_named(self, name: str, path: str, identity: tuple[int, int]) -> bool:
        return any(each.symbol == name and each.library.is_file(path, identity) for each in self.functions)


def title(path: str, symbol: str) -> str:
    """``libtrain.so:train_step``: how a step is named in tables and on the timeline."""
    return f"{os.path.basename(path)}:{symbol}"
