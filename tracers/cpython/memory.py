"""Memory of another process."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager


class Memory:
    """What a process has in memory: /proc/PID/mem, which stays that program's after an exec or an exit."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def read(self, address: int, size: int) -> bytes:
        """Exactly so many bytes. OSError where they are not there, or not any more."""
        if not 0 <= address < 1 << 63:
            raise OSError("not an address")
        data = os.pread(self._fd, size, address)
        if len(data) != size:
            raise OSError("no memory there")
        return data

    def word(self, address: int) -> int:
        """The 8 bytes at an address. OSError like `read`."""
        (value,) = struct.unpack("<Q", self.read(address, 8))
        return int(value)


@contextmanager
def memory_of(pid: int) -> Iterator[Memory]:
    """The memory of a live process. OSError if it is gone, or may not be read."""
    fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield Memory(fd)
    finally:
        os.close(fd)
