"""Sums of stacks written with one frame per line: text that was seen before is not parsed again."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from ...model import Frame, Labels, Sample
from .source import Source

MAX_DIGITS = 18
"""Keeps weights, and mostly their sums, within 64 bits."""

_MAX_CACHED = 64 << 20
"""Maximum size of the text for which results are cached, in bytes."""
_MAX_LINES = 1 << 18
_MAX_LINE = 1 << 10
"""Longer lines are not cached, which bounds the memory of their cache."""
_MAX_FRAMES = 10_000
_MAX_PIECE = 4 << 20
_NOTHING = 0
"""The number of a blank line, which has no frame but is not an error."""


class NotAFrame(Exception):
    """A line among the frames is not a frame: the stack has to be read line by line."""


def pieces(source: Source, separator: bytes) -> Iterator[bytes]:
    """The stream split at each ``separator`` (a line break and more text), like ``bytes.split``. A piece of more than
    4 MiB is not a stack: it is cut after a line, although there is no separator."""
    split = re.compile(re.escape(separator)).split  # twice as fast as bytes.split
    rest = b""
    for chunk in source.chunks(separator):
        parts = split(rest + chunk)
        rest = parts.pop()
        yield from parts
        if len(rest) > _MAX_PIECE:
            yield rest
            rest = b""
    yield rest


class StackTally:
    """Weights by stack and labels. Memory grows with the number of distinct stacks, not with the text."""

    def __init__(self, parse: Callable[[bytes], tuple[Frame, ...] | None]) -> None:
        """``parse`` returns the frames of a line, outermost first, or None if the line is not a frame."""
        self.weights: defaultdict[int, int] = defaultdict(int)
        """The key is the number of a stack plus that of its labels."""
        self.lines = _Lines(parse)
        self._stacks: dict[tuple[int, ...], int] = {(): 0}
        self._labels: dict[Labels, int] = {(): 0}
        self._texts: dict[bytes, tuple[int, int]] = {}
        self.known = self._texts.get
        """Lookup of a cached text: its key and the number of its line breaks; None if it is not cached."""
        self._cached = 0

    def remember(self, text: bytes, key: int) -> tuple[int, int]:
        """Caches ``key`` for ``text``. Returns what `known` will return."""
        self._cached += len(text) + 200
        if self._cached > _MAX_CACHED:
            self._texts.clear()
            self._cached = len(text)
        known = self._texts[text] = key, text.count(b"\n")
        return known

    def stack(self, lines: Iterable[bytes]) -> int:
        """The number of the stack with these lines, innermost frame first; 0 if there is no frame. Raises NotAFrame."""
        return self.stack_of(tuple(map(self.lines.__getitem__, lines)))

    def stack_of(self, numbers: tuple[int, ...]) -> int:
        """The number of the stack with these numbers of `lines`, innermost first. Raises NotAFrame if it is too
        deep."""
        if _NOTHING in numbers:
            numbers = tuple(filter(None, numbers))
        if len(numbers) > _MAX_FRAMES:
            raise NotAFrame
        return self._stacks.setdefault(numbers, len(self._stacks))

    def outermost(self) -> set[tuple[Frame, ...]]:
        """The frames of the outermost line of each stack."""
        frames = self.lines.frames
        return {frames[numbers[-1]] for numbers in self._stacks if numbers}

    def labels(self, labels: Labels) -> int:
        """The number to add to that of a stack with these labels."""
        return self._labels.setdefault(labels, len(self._labels)) << 32

    def samples(self) -> list[Sample]:
        """One sample per distinct stack and labels, with one value, in the order of the input."""
        frames = self.lines.frames
        if all(len(each) < 2 for each in frames):
            single = [each[0] for each in frames if each]
            stacks = [tuple([single[n - 1] for n in reversed(each)]) for each in self._stacks]
        else:
            stacks = [tuple([frame for n in reversed(each) for frame in frames[n]]) for each in self._stacks]
        labels = list(self._labels)
        return [
            Sample(stacks[key & 0xFFFFFFFF], (weight,), labels[key >> 32])
            for key, weight in self.weights.items()
            if weight
        ]


class _Lines(dict[bytes, int]):
    """Text of a line → number of its frames in ``frames``. Raises NotAFrame."""

    def __init__(self, parse: Callable[[bytes], tuple[Frame, ...] | None]) -> None:
        super().__init__()
        self.frames: list[tuple[Frame, ...]] = [()]
        self._parse = parse
        self._numbers: dict[tuple[Frame, ...], int] = {(): _NOTHING}

    def __missing__(self, line: bytes) -> int:
        frames = self._parse(line)
        if frames is None:
            raise NotAFrame
        number = self.number(frames)
        if len(line) <= _MAX_LINE:
            if len(self) >= _MAX_LINES:
                self.clear()
            self[line] = number
        return number

    def number(self, frames: tuple[Frame, ...]) -> int:
        """The number of these frames, outermost first."""
        number = self._numbers.setdefault(frames, len(self.frames))
        if number == len(self.frames):
            self.frames.append(frames)
        return number
