"""Counts the items that a reader skipped, by kind, and keeps the place of the first error."""

from __future__ import annotations

from ...base.errors import StallscopeError
from ...model import Profile
from ...model.remarks import FirstSkipped
from .source import Source

_FEW = 8
"""Smaller inputs are judged as if they had this many lines: a few bad lines prove nothing."""
LINE = "line"
"""`FirstSkipped.unit`."""
ROUNDED = "weights with a fraction, rounded"
NUL = "lines with a NUL byte"
EXPECTED_TEXT = "text without NUL bytes"
"""The text for ``expected`` in `Skipped.add` with the kind `NUL`."""


def _filled(source: Source) -> int:
    """Number of non-empty lines in ``source``, which has been read to its end, estimated from its first lines."""
    lines = source.head.splitlines()
    empty = sum(not line.strip() or line.startswith(b"#") for line in lines)
    return source.lines - source.lines * empty // max(len(lines), 1)


class Skipped:
    """Counts of lines or samples that were left out of a profile."""

    def __init__(self, name: str, expected: str) -> None:
        """``name`` of the input, and what is ``expected`` of its lines, for messages."""
        self.counts: dict[str, int] = {}
        self.rounded = 0
        """Number of weights that were not integers."""
        self._name = name
        self._expected = expected
        self._first = 0
        self._reason = ""
        """Text for what was expected at the first error, if it is not the one that applies to all lines; else ""."""
        self._errors = 0
        """Number of errors reported to `add` with a line."""

    def add(self, kind: str, line: int = 0, count: int = 1, expected: str = "") -> None:
        """Counts an item. If it is an error in the input, ``line`` (from 1) is its place. ``expected`` is what was
        expected there, if that is more specific than the text for all lines."""
        self.counts[kind] = self.counts.get(kind, 0) + count
        if line:
            self._errors += 1
            if not self._first:
                self._first, self._reason = line, expected

    def check(self, source: Source, useful: bool, expected: str) -> None:
        """Raises StallscopeError if nothing useful was found, or if more than half of the lines are errors.

        ``source`` has been read to its end.
        """
        expected = self._reason or expected
        if not useful and self._first:
            source.fail(self._first, expected)
        if self._errors * 2 > max(_filled(source), _FEW):
            looks = f"{source.name} looks like {source.format or 'this format'}"
            many = f"{self._errors:,} of its {source.lines:,} lines are not understood"
            cause = f"{looks}, but {many}; the first is line {self._first}: expected {expected}"
            raise StallscopeError(cause, "if it is another format that is read, --from NAME says so")

    def tell(self, profile: Profile) -> None:
        """Adds the counts, and the place of the first error, to ``profile``."""
        profile.lost.update(self.counts)
        if self.rounded:
            profile.lost[ROUNDED] = self.rounded
        if self._first:
            expected = self._reason or self._expected
            profile.comments.append(FirstSkipped(self._name, LINE, self._first, expected))
