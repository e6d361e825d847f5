"""A ring buffer of the kernel whose records all have one size, read in bulk."""

from __future__ import annotations

import mmap

import numpy as np
from numpy.typing import NDArray

from ....kernel.bpfmap import Map
from ....kernel.shared_memory import unmap

_BUSY = np.uint32(1 << 31)


class BulkRing:
    """``record`` is the layout of a record, which begins with the header of the ring buffer, as ``length`` and
    ``page``."""

    def __init__(self, source: Map, record: np.dtype[np.void]) -> None:
        self._size, self._record = source.max_entries, record
        page = mmap.PAGESIZE
        self._consumer = mmap.mmap(source.fd, page)
        # As in `bpfmap.RingBuffer`: the producer's page, then the data twice.
        self._memory = mmap.mmap(source.fd, page + 2 * self._size, prot=mmap.PROT_READ, offset=page)
        self._position = 0

    def take(self) -> NDArray[np.void]:
        """The new records, in the order in which they were written."""
        end = int.from_bytes(self._memory[:8], "little")
        begin = mmap.PAGESIZE + (self._position & (self._size - 1))
        size = self._record.itemsize
        count = (end - self._position) // size
        found = np.frombuffer(self._memory[begin : begin + count * size], self._record)
        busy = np.flatnonzero(found["length"] & _BUSY)
        if len(busy):  # it is being written
            found = found[: busy[0]]
        self._position += len(found) * size
        self._consumer[:8] = self._position.to_bytes(8, "little")
        return found

    def close(self) -> None:
        """Unmaps it; a second call does nothing."""
        unmap(self._memory)
        unmap(self._consumer)
