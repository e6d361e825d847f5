"""Python functions of a trace's stacks: their frames, among the native ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....converters.model import Frame, Stack
from ...cpython.merging import Placed, merge
from ...kernel import python
from ...kernel.python import Call
from .capture import PythonFunctions

_CUT = {"too deep": Frame("[more Python functions]", "other"), "not readable": Frame("[Python not readable]", "other")}


@dataclass(frozen=True)
class Python:
    """Looks of stacks with Python functions: ``only`` these, or with the interpreter's ``machinery``."""

    only: bool = False
    machinery: bool = False


PLAIN = Python()


def python_first(stacks: Mapping[int, tuple[int, ...]]) -> Mapping[int, tuple[int, ...]]:
    """Stacks with their Python part before the native one: one that was cut is then the beginning of the
    complete one, if it has the same functions."""
    found = {}
    for stack, words in stacks.items():
        begin = python.begin_of(words)
        if begin < len(words):
            found[stack] = words[begin:] + words[:begin]
    return {**stacks, **found} if found else stacks


class PythonStacks:
    """The Python parts of the stacks of a trace."""

    def __init__(self, functions: PythonFunctions, how: Python) -> None:
        self._functions = functions.by_code
        self._are_there = functions.are_there
        self._how = how
        self.nameless: set[tuple[int, int]] = set()
        """Functions in joined stacks that were not read: address and checksum of the code object."""
        self._frames: dict[tuple[int, int, int], Frame] = {}

    def split(self, words: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The native frames of a stack, and the words of its Python functions."""
        if not self._are_there:
            return words, ()
        begin = python.begin_of(words)
        return words[:begin], words[begin:]

    def joined(self, native: Stack, words: tuple[int, ...], *, whole: bool) -> Stack:
        """The whole stack. ``whole``: the native one is complete."""
        if not words:
            return native
        found = python.parse(words)
        placed = [Placed(self._frame(call), call.is_entry) for call in reversed(found.calls)]
        if found.cut:
            placed.insert(0, Placed(_CUT[found.cut], is_entry=False))
        return merge(native, placed, whole=whole and not found.cut, only=self._how.only, machinery=self._how.machinery)

    def _frame(self, call: Call) -> Frame:
        key = call.code, call.checksum, call.instruction
        frame = self._frames.get(key)
        if frame is None:
            function = self._functions.get((call.code, call.checksum))
            if function is None:
                self.nameless.add((call.code, call.checksum))
                frame = Frame("[Python function]", "python")
            else:
                frame = Frame(function.name, "python", file=function.file, line=function.line(call.instruction))
            self._frames[key] = frame
        return frame
