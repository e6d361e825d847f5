"""Memory of this process."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_STATM = Path("/proc/self/statm")


def own_memory() -> int:
    """Bytes of our resident memory that no file backs."""
    resident, of_files = map(int, _STATM.read_text().split()[1:3])
    return (resident - of_files) * os.sysconf("SC_PAGESIZE")


def trim() -> None:
    """Gives what was freed back to the kernel, of which glibc keeps up to twice the size of the largest array."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except AttributeError:  # another C library
        return
