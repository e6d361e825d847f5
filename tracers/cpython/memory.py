"""Memory of another process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..outside.reads import Memory


@contextmanager
def memory_of(pid: int) -> Iterator[Memory]:
    """The memory of a live process. Its reads raise OSError if it is gone, may not be read, or does not answer."""
    memory = Memory(pid)
    try:
        yield memory
    finally:
        memory.close()
