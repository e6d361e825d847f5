"""Memory that this process uses, and may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .errors import StallscopeError

_LEAST = 8 << 30
"""Bytes that a command's data may take (RLIMIT_DATA), or a quarter of the machine's memory if that is more. A trace of
a host with all engines and measures takes less than 1 GB."""
_PAGE = os.sysconf("SC_PAGESIZE")
_RESIDENT, _SHARED = 1, 2
"""Places in /proc/self/statm, see proc(5)."""


def used() -> int:
    """Bytes in memory that are no pages of files; 0 where that is not told."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:
            words = file.read(256).split()
        return (int(words[_RESIDENT]) - int(words[_SHARED])) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def most() -> int:
    """Bytes that the data of a command may take."""
    return max(_LEAST, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE") // 4)


@contextmanager
def limited() -> Iterator[None]:
    """No more than that inside. StallscopeError when it is used up there."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY or soft > most():
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_DATA, (most(), hard))
    try:
        yield
    except MemoryError:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
        raise used_up() from None
    finally:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def used_up() -> StallscopeError:
    """The error when there is no more."""
    cause = f"the memory that this command may take, {most() >> 20:,} MiB, is used up"
    return StallscopeError(cause, "record for a shorter time, or convert fewer inputs at once")
