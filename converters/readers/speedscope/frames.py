"""The table of frames of a speedscope file, and the values of stacks of these frames.

The table may contain a frame several times: stacks are the same if their frames are equal.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from ...model import Frame, Labels, Module, Stack
from ..base.python_frames import kind_of, root_labels
from .json import JsonParts
from .values import MAX_VALUE, typed

UNKNOWN = "[unknown]"

_Number = TypeVar("_Number", int, float)


class Frames:
    """The array shared.frames."""

    def __init__(self) -> None:
        self._frames: list[Frame] = []
        self._first: dict[Frame, int] = {}
        self.firsts = array("I")
        """Index of the first equal frame in the table, for each frame index."""
        self._wrong = "shared should be a JSON object"

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, index: int) -> Frame:
        return self._frames[index]

    def read(self, parts: JsonParts) -> None:
        """Reads the value of "shared"."""
        self._wrong = "shared should be a JSON object"
        if parts.next() != "{":
            parts.value()
            return
        self._wrong = "shared.frames should be a JSON array"
        for key in parts.keys_here():
            if key == "frames":
                self._read_frames(parts)
            else:
                parts.value()

    def check(self) -> None:
        """ValueError for the first error in the table."""
        if self._wrong:
            raise ValueError(self._wrong)

    def same(self, one: int, other: int) -> bool:
        """Whether two indices refer to equal frames."""
        return self.firsts[one] == self.firsts[other]

    def indices(self, values: list[Any], where: str) -> array[int]:
        """A file's indices, with equal frames mapped to one index. ValueError for an invalid index."""
        count, firsts = len(self._frames), self.firsts
        if values and set(map(type, values)) == {int} and min(values) >= 0 and max(values) < count:
            return array("I", map(firsts.__getitem__, values))
        for value in values:
            if not 0 <= typed(value, int, f"a frame of {where}") < count:
                raise ValueError(f"{where} has a frame that is not in shared.frames")
        return array("I")

    def _read_frames(self, parts: JsonParts) -> None:
        self._frames, self._first, self.firsts = [], {}, array("I")
        if parts.next() != "[":
            self._wrong = "shared.frames should be a JSON array"
            parts.value()
            return
        self._wrong = ""
        for _ in parts.elements():
            value = parts.value()
            if not self._wrong:
                try:
                    self._add(_frame(value))
                except ValueError as error:
                    self._wrong = str(error)

    def _add(self, frame: Frame) -> None:
        self.firsts.append(self._first.setdefault(frame, len(self._frames)))
        self._frames.append(frame)


class Sums:
    """Values by stack and labels, in the order of first occurrence."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._numbers: dict[bytes, int] = {}
        self._stacks: list[Stack] = []
        self._below: dict[int, int] = {}
        self._labels: dict[Labels, int] = {}
        self._values: dict[int, float] = {}
        self._counts: dict[int, int] = {}

    def stack(self, indices: array[int]) -> int:
        """The number of a stack. ``indices`` must come from `Frames.indices`."""
        number = self._numbers.setdefault(indices.tobytes(), len(self._stacks))
        if number == len(self._stacks):
            self._stacks.append(tuple(map(self._frames.__getitem__, indices)))
        return number

    def below(self, caller: int, index: int) -> int:
        """The number of the stack ``caller`` with one more frame; -1 is the empty stack. These numbers must not be
        mixed with those from `stack`."""
        key = (caller + 1) << 32 | self._frames.firsts[index]
        number = self._below.setdefault(key, len(self._stacks))
        if number == len(self._stacks):
            self._stacks.append((*(self._stacks[caller] if caller >= 0 else ()), self._frames[index]))
        return number

    def owner(self, labels: Labels) -> int:
        """The number for these labels."""
        return self._labels.setdefault(labels, len(self._labels))

    def add(self, owner: int, values: Iterable[tuple[int, float]]) -> None:
        """Adds (number of a stack, value) pairs to the values of the labels with this number."""
        _add(self._values, owner << 32, values)

    def add_counts(self, owner: int, counts: Iterable[tuple[int, int]]) -> None:
        """Adds the number of occurrences of stacks that have a value."""
        _add(self._counts, owner << 32, counts)

    def items(self) -> Iterator[tuple[Stack, Labels, float, int]]:
        """(stack, labels, value, count)."""
        stacks, labels, counts = self._stacks, list(self._labels), self._counts
        for key, value in self._values.items():
            yield stacks[key & 0xFFFF_FFFF], labels[key >> 32], value, counts.get(key, 0)

    def without_roots(self, owner: int, labels: Labels, indices: array[int]) -> tuple[int, array[int]]:
        """Converts the outermost frames, py-spy's for the process and the thread, to labels: returns the number of
        these labels and the rest of the stack."""
        told = dict(labels)
        at = 0
        while at < len(indices) and not (frame := self._frames[indices[at]]).file and (more := root_labels(frame.name)):
            told.update(more)
            at += 1
        return (self.owner(tuple(sorted(told.items()))), indices[at:]) if at else (owner, indices)


def _frame(value: Any) -> Frame:
    entry = typed(value, dict, "a frame")
    name = typed(entry.get("name"), str, "a frame's name")
    name = name if name.strip() else UNKNOWN
    file = typed(entry.get("file") or "", str, "a frame's file")
    line = typed(entry.get("line") or 0, int, "a frame's line")
    if file.startswith("[kernel"):
        return Frame(name, "kernel", None if file == "[kernel]" else Module(file))
    return Frame(name, kind_of(file), file=file, line=line if 0 < line < MAX_VALUE else 0)


def _add(sums: dict[int, _Number], owner: int, values: Iterable[tuple[int, _Number]]) -> None:
    get = sums.get
    for stack, value in values:
        key = owner | stack
        sums[key] = get(key, 0) + value
