"""Stacks followed by their count: one frame per line, innermost first, then a line with only a number. This is what
scripts for SystemTap and DTrace print."""

from __future__ import annotations

from collections.abc import Callable

from ...model import Frame, Labels, Profile, ValueType
from .skipped import Skipped
from .source import Source
from .stack_tally import MAX_DIGITS, NotAFrame, StackTally

_BAD, _CUT, _EMPTY = "lines not understood", "stacks without a count at the end", "counts without a stack"
_MAX_OPEN = 10_000
_STACK = 0xFFFFFFFF


class CountedStacks:
    """Sums of such stacks. A stack may arrive in parts: `add` and `add_lines` continue where the last call ended."""

    def __init__(
        self,
        name: str,
        expected: str,
        parse: Callable[[bytes], tuple[Frame, ...] | None],
        keys: Callable[[list[bytes]], tuple[int, Labels]] | None = None,
    ) -> None:
        """``name`` of the input, and what is ``expected`` in it, for messages. ``parse`` is passed to `StackTally`;
        ``keys`` returns how many of a stack's first lines are keys, not frames, and the labels that they give."""
        self.skipped = Skipped(name, expected)
        self._expected = expected
        self._tally = StackTally(lambda line: None if line.strip().isdigit() else parse(line))
        self._known, self._weights = self._tally.known, self._tally.weights
        self._keys = keys
        self._line = 1
        self._open: list[bytes] = []
        """Lines of the stack whose count has not been read yet."""

    def add(self, text: bytes, count: bytes, breaks: int = 1) -> bool:
        """Adds the lines of a stack and the line of its count, followed by ``breaks`` line ends. If they are something
        else, returns False without having changed anything; they must then go to `add_lines`."""
        if self._open or len(count) > MAX_DIGITS or not count.isdigit():
            return False
        known = self._known(text) or self._learn(text)
        if known is None:
            return False
        key, lines = known
        self._weights[key] += int(count)
        self._line += lines + 1 + breaks
        return True

    def add_lines(self, text: bytes) -> None:
        """Adds whole lines, the last one without its line end: frames, counts or anything else."""
        for line in text.split(b"\n"):
            word = line.strip()
            if word.isdigit() and (self._open or self._keys is None):
                self._count(word)
            elif word:
                self._open_line(line)
            self._line += 1

    def drop(self, kind: str) -> None:
        """Discards the stack whose count has not been read, if there is one, and counts it as lost."""
        if self._open:
            self._open = []
            self.skipped.add(kind)

    def _learn(self, text: bytes) -> tuple[int, int] | None:
        try:
            key = self._find(text.split(b"\n"))
        except NotAFrame:
            return None
        return self._tally.remember(text, key) if key & _STACK else None

    def _find(self, lines: list[bytes]) -> int:
        """The key of a stack, or of the empty stack when there are only keys. Raises NotAFrame."""
        if self._keys is None:
            return self._tally.stack(lines)
        skip, labels = self._keys(lines)
        return self._tally.stack(lines[skip:]) + self._tally.labels(labels)

    def _open_line(self, line: bytes) -> None:
        if len(self._open) >= _MAX_OPEN:
            self.skipped.add(_BAD, self._line)
            return
        try:
            if (self._keys and line.strip().isdigit()) or self._tally.lines[line]:
                self._open.append(line)
        except NotAFrame:
            self.skipped.add(_BAD, self._line)

    def _count(self, word: bytes) -> None:
        lines, self._open = self._open, []
        key = 0
        if len(word) > MAX_DIGITS:
            self.skipped.add(_BAD, self._line)
            return
        try:
            key = self._find(lines)
        except NotAFrame:
            self.skipped.add(_BAD, self._line)
            return
        if key & _STACK:
            self._tally.weights[key] += int(word)
        else:
            self.skipped.add(_EMPTY, self._line)

    def profile(self, source: Source, title: str) -> Profile:
        """The result. Raises StallscopeError if lines were read but no stack was found."""
        self.drop(_CUT)
        profile = Profile([ValueType("samples", "count")], self._tally.samples(), title=title)
        self.skipped.check(source, bool(profile.samples), self._expected)
        self.skipped.tell(profile)
        return profile
