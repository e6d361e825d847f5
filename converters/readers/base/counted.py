"""Stacks that stand above their count: frames one a line, innermost first, then a line with nothing but a number. What
scripts for SystemTap and DTrace print."""

from __future__ import annotations

from collections.abc import Callable

from ..model import Frame, Labels, Profile, ValueType
from .skipped import Skipped
from .source import Source
from .stack_tally import MAX_DIGITS, NotAFrame, StackTally

_BAD, _CUT, _EMPTY = "lines not understood", "stacks without a count at the end", "counts without a stack"
_MAX_OPEN = 10_000
_STACK = 0xFFFFFFFF


class CountedStacks:
    """Sums them up. A stack may come in parts: `add` and `add_lines` go on where the last call ended."""

    def __init__(
        self,
        name: str,
        expected: str,
        parse: Callable[[bytes], tuple[Frame, ...] | None],
        keys: Callable[[list[bytes]], tuple[int, Labels]] | None = None,
    ) -> None:
        """``name`` of the input and what is ``expected`` in it, for messages. ``parse`` is that of `StackTally`;
        ``keys`` says how many of the first lines of a stack are no frames, and what they tell."""
        self.skipped = Skipped(name, expected)
        self._expected = expected
        self._tally = StackTally(lambda line: None if line.strip().isdigit() else parse(line))
        self._known, self._weights = self._tally.known, self._tally.weights
        self._keys = keys
        self._line = 1
        self._open: list[bytes] = []
        """Lines of the stack whose count has not come yet."""

    def add(self, text: bytes, count: bytes, breaks: int = 1) -> bool:
        """The lines of a stack, and the line of its count, which ``breaks`` line ends follow. False if that is not what
        they are: nothing has happened then, and they are for `add_lines`."""
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
        """Whole lines, the last one without its end: frames, counts or anything else."""
        for line in text.split(b"\n"):
            word = line.strip()
            if word.isdigit() and (self._open or self._keys is None):
                self._count(word)
            elif word:
                self._open_line(line)
            self._line += 1

    def drop(self, kind: str) -> None:
        """Forgets the stack whose count has not come, if there is one, and counts that."""
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
        """The key of a stack; that of the empty one when there are only keys. Raises NotAFrame."""
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
        """What was counted. Raises StallscopeError if lines were read and none of them was."""
        self.drop(_CUT)
        profile = Profile([ValueType("samples", "count")], self._tally.samples(), title=title)
        self.skipped.check(source, bool(profile.samples), self._expected)
        self.skipped.tell(profile)
        return profile
