"""Types that commands hand to measures that ask questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..expressions.asked import Bound, Fault
    from ..images.elf import ElfFile
    from ..images.functions import Function

    Binder = Callable[[int, ElfFile, str, Sequence[Function]], list[Bound | Fault]]
    """Finds the meaning of the questions for functions of an open file."""

Compile = Callable[[str, Sequence[str]], Mapping[str, bytes]]
"""Compiles C, given the names of its programs, to their instructions."""


class Line(NamedTuple):
    """Line of a --print. ``text``: with names and strings as the process has them. ``is_raw``: the user gave a
    format."""

    pid: int
    tid: int
    function: int
    text: str
    is_raw: bool
