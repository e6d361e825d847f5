"""What a reader left out: counted by kind, the first of it with its place."""

from __future__ import annotations

from ..model import Profile
from .source import Source

ROUNDED = "weights with a fraction, rounded"


class Skipped:
    """Counts of lines or samples that did not get into a profile."""

    def __init__(self, name: str, expected: str) -> None:
        """``name`` of the input and what its lines should be, for the messages."""
        self.counts: dict[str, int] = {}
        self.rounded = 0
        """Weights that were no whole numbers."""
        self._name = name
        self._expected = expected
        self._first = 0

    def add(self, kind: str, line: int = 0, count: int = 1) -> None:
        """``line`` is where it was, counted from 1, if that is an error in the input."""
        self.counts[kind] = self.counts.get(kind, 0) + count
        if line and not self._first:
            self._first = line

    def check(self, source: Source, useful: bool, expected: str) -> None:
        """Raises StallscopeError if nothing useful was found, and something else was."""
        if not useful and self._first:
            source.fail(self._first, expected)

    def tell(self, profile: Profile) -> None:
        """Adds the counts, and where the first was, to what ``profile`` says."""
        profile.lost.update(self.counts)
        if self.rounded:
            profile.lost[ROUNDED] = self.rounded
        if self._first:
            profile.comments.append(f"{self._name}, line {self._first}: expected {self._expected}")
