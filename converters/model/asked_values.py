"""Answers to questions about calls and events: how values of arguments, fields and results are distributed."""

from __future__ import annotations

from dataclasses import dataclass, field

MOST_VALUES = 1000


@dataclass(slots=True)
class AskedValues:
    """Values of one expression in the calls of one function: all its processes together."""

    ask: str
    """``hist``: a histogram; ``sum``; ``count-by``: how often each value was there."""
    text: str
    """The expression, as the user wrote it."""
    name: str
    library: str
    count: int
    """Number of values."""
    sum: int
    """Sum of the values; as the kernel side adds, in 64 bits."""
    buckets: list[tuple[int, int, int]] = field(default_factory=list)
    """Buckets of a histogram: lowest and highest value that fall in, and how many did; in order, none empty."""
    values: list[tuple[str, int]] = field(default_factory=list)
    """Most frequent values for ``count-by``, in order, and how often each was there; at most `MOST_VALUES`."""
    others: int = 0
    """Number of times that values beside ``values`` were there."""

    @property
    def mean(self) -> float:
        """0 without values."""
        return self.sum / self.count if self.count else 0.0


def bounds(bucket: int) -> tuple[int, int]:
    """The values of a bucket, lowest and highest: 0 is 0 alone, n those of n bits, -n those below 0."""
    if not bucket:
        return 0, 0
    low, high = 1 << (abs(bucket) - 1), (1 << abs(bucket)) - 1
    return (low, high) if bucket > 0 else (-high, -low)
