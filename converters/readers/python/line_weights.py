"""Weights by the text of a stack, for formats with lines ``STACK WEIGHT``: stacks are parsed only once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

MAX_DIGITS = 18
"""Keeps weights, and mostly their sums, within 64 bits."""


class LineWeights:
    """Sums of integers. Lines of another shape are passed to ``unusual(line, number)``; empty ones are ignored."""

    def __init__(self, unusual: Callable[[bytes, int], None]) -> None:
        self.weights: defaultdict[bytes, int] = defaultdict(int)
        self._unusual = unusual
        self._line = 1

    def add(self, chunk: bytes) -> None:
        """Counts the lines of ``chunk``, which continues where the last one ended."""
        weights = self.weights
        lines = chunk.split(b"\n")
        for i, line in enumerate(lines):
            stack, _, weight = line.rpartition(b" ")
            if weight.isdigit() and stack and len(weight) <= MAX_DIGITS:
                weights[stack] += int(weight)
            elif line:
                self._unusual(line, self._line + i)
        self._line += len(lines) - 1
