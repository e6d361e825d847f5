"""Weights by the text of a stack, for formats of lines ``STACK WEIGHT``: lines are cut by hand, stacks parsed once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

MAX_DIGITS = 18
"""So that weights fit into 64 bits, and their sums mostly too."""


class LineWeights:
    """Sums of whole numbers. Lines of another shape go to ``unusual(line, number)``, empty ones nowhere."""

    def __init__(self, unusual: Callable[[bytes, int], None]) -> None:
        self.weights: defaultdict[bytes, int] = defaultdict(int)
        self._unusual = unusual
        self._line = 1

    def add(self, chunk: bytes) -> None:
        """Counts the lines of ``chunk``, which begins where the last one ended."""
        weights = self.weights
        lines = chunk.split(b"\n")
        for i, line in enumerate(lines):
            stack, _, weight = line.rpartition(b" ")
            if weight.isdigit() and stack and len(weight) <= MAX_DIGITS:
                weights[stack] += int(weight)
            elif line:
                self._unusual(line, self._line + i)
        self._line += len(lines) - 1
