"""Writes to memory that the kernel, or a BPF program, reads at the same time."""

from __future__ import annotations

import contextlib
import mmap

_SIZE = 8


def store_u64(memory: mmap.mmap, offset: int, value: int) -> None:
    """Writes 8 bytes at ``offset``, a multiple of 8, as a whole: a reader sees the old value or the new one.

    `struct.Struct.pack_into` must not be used for this: it fills its place with zeros first. ValueError, TypeError or
    OverflowError: nothing was written.
    """
    with memoryview(memory) as view, view[offset : offset + _SIZE] as place, place.cast("Q") as cell:
        cell[0] = value


def unmap(memory: mmap.mmap) -> None:
    """Unmaps memory; a second call does nothing. A view that a call still has, which Ctrl-C has interrupted, keeps the
    memory until it is gone."""
    with contextlib.suppress(BufferError):
        memory.close()
