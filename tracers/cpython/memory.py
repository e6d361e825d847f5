"""Memory of another process."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from ..outside.reads import Memory


class Readable(Protocol):
    """Memory, or parts of it that were read before."""

    def read(self, address: int, size: int) -> bytes:
        """Exactly so many bytes. OSError where they are not there."""

    def word(self, address: int) -> int:
        """The 8 bytes at an address. OSError like `read`."""


class ReadAhead:
    """Memory of which parts are read in one go, before they are needed: each read of its own takes ten times as long.

    What is in no such part is read when it is asked for.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._parts: dict[int, bytes] = {}
        self._starts: list[int] = []

    def expect(self, places: Sequence[tuple[int, int]]) -> None:
        """Reads what is at each (address, size), as far as it is there. OSError if the process does not answer."""
        self._parts.update(zip((start for start, _ in places), self._memory.read_some(places), strict=True))
        self._starts = sorted(self._parts)

    def read(self, address: int, size: int) -> bytes:
        """Reads as `Memory.read` does."""
        i = bisect_right(self._starts, address) - 1
        if i >= 0:
            at = address - self._starts[i]
            data = self._parts[self._starts[i]][at : at + size]
            if len(data) == size:
                return data
        return self._memory.read(address, size)

    def word(self, address: int) -> int:
        """Reads as `Memory.word` does."""
        return int.from_bytes(self.read(address, 8), "little")


@contextmanager
def memory_of(pid: int) -> Iterator[Memory]:
    """The memory of a live process. Its reads raise OSError if it is gone, may not be read, or does not answer."""
    memory = Memory(pid)
    try:
        yield memory
    finally:
        memory.close()
