"""Python's interpreter lock (GIL): for how long a process's threads waited for it, and who had it meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field

MOST_THREADS = 64
"""Limit on the entries of a process's lists."""


@dataclass(slots=True)
class GilThread:
    """A thread that waited, or for which others did while it had the lock. Names are hostile."""

    thread: str
    tid: int
    time: int = 0
    """ns of waits."""
    waits: int = 0
    frames: tuple[str, ...] = ()
    """Python functions in which a thread that had the lock was when the waits began, outermost first, as
    `summary.wait_sites.Site` has them; empty if they are not known, and for waiters. A thread has an entry for each."""


@dataclass(slots=True)
class GilTimes:
    """The waits of one process. Times in ns. A wait ends, and the next one begins, at the latest after the
    interpreter's switch interval (5 ms)."""

    process: str
    pid: int
    time: int = 0
    waits: int = 0
    max: int = 0
    open_count: int = 0
    """Number of the waits that had not ended when the trace did."""
    unknown: int = 0
    """Part of ``time`` in waits that began when nobody had the lock, or of which it is not known who had it."""
    waiters: list[GilThread] = field(default_factory=list)
    """Longest first; at most `MOST_THREADS`."""
    more_waiters: int = 0
    holders: list[GilThread] = field(default_factory=list)
    """Threads that had the lock, longest first; at most `MOST_THREADS`."""
    more_holders: int = 0
    """Entries that are left out."""
