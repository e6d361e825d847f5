"""Locks that threads waited for: which one, who waited, who had it meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field

OWNER, WRITER, WAKER = "owner", "writer", "waker"
"""Sources that tell the holder: the lock itself, when the wait began; the writer of a rwlock; or only the end of the
wait, by the one that caused it."""

MUTEX, PI_MUTEX, RWLOCK, GIL = "mutex", "PI mutex", "rwlock", "GIL"
CONDITION, SEMAPHORE, BARRIER, JOIN = "condition", "semaphore", "barrier", "join"
FUTEX = "futex"
"""Nothing tells what it is."""
CONTENDED = (MUTEX, PI_MUTEX, RWLOCK, GIL)
"""Kinds of a program's locks whose waits are contention."""
SIGNALLED = (CONDITION, SEMAPHORE, BARRIER, JOIN)
"""Kinds whose waits end when something happens, not when somebody gives back what he has."""

_BY_WAITERS = 0.8
"""A semaphore is used as a lock if this share of its waits is ended by threads that wait for it, too."""
_BOTH = 2
"""A semaphore is also used as one if so many threads, all its waiters but one at most, wait for it and give it back:
whoever has the lock most of the time may never wait for it, and the last one gives it back to nobody."""

PROCESS, SHARED, KERNEL = "process", "shared", "kernel"
"""Owners of a lock: one process, several in memory that they share, or the kernel."""


@dataclass(slots=True)
class LockThread:
    """A thread that waited, or for which others did. Names are hostile."""

    process: str
    thread: str
    pid: int
    tid: int
    time: int = 0
    """ns of waits."""
    waits: int = 0
    source: str = ""
    """Source that tells the holder: `OWNER`, `WRITER` or `WAKER`; "" for a waiter."""
    frames: tuple[str, ...] = ()
    """Place where the holder gave the lock back, if it was seen to; else, and for a waiter, empty."""


@dataclass(slots=True)
class LockPlace:
    """Place where threads waited: functions, outermost first."""

    frames: tuple[str, ...]
    time: int = 0
    waits: int = 0


@dataclass(slots=True)
class LockTimes:
    """The waits for one lock. Times in ns."""

    name: str
    """Symbol and offset, file and offset, or address. Of the kernel's: the variable, or the type and field, or the
    cache that its memory is from, with the address unless nothing else has that name."""
    kind: str
    """Kind of a program's lock, such as `MUTEX`; of the kernel's its type: ``mutex``, ``rwsem``, ``spinlock``."""
    owned_by: str
    """`PROCESS`, `SHARED` or `KERNEL`."""
    process: str = ""
    """Name of the process to which the lock belongs, also if it is the kernel's for it; "" if there is none."""
    pid: int = 0
    time: int = 0
    waits: int = 0
    max: int = 0
    open_count: int = 0
    """Number of the waits that had not ended when the trace did."""
    queue: int = 0
    """Longest time in which there was always somebody who waited."""
    queue_waits: int = 0
    """Number of the waits in ``queue``."""
    waiters: list[LockThread] = field(default_factory=list)
    """Longest first; at most `MOST_THREADS`."""
    more_waiters: int = 0
    holders: list[LockThread] = field(default_factory=list)
    """Threads that had the lock, longest first; at most `MOST_THREADS`."""
    places: list[LockPlace] = field(default_factory=list)
    """Places where threads waited, longest first; at most `MOST_PLACES`."""
    judged: int = 0
    """Number of the waits of which it is known whether others waited for it at the same time."""
    judged_time: int = 0
    alone: int = 0
    """Number of the waits, of ``judged``, during which nobody else waited for it."""
    alone_time: int = 0
    busy: int = 0
    """Time in which somebody waited, as far as it is known."""
    taken_in: str = ""
    """Function in which most of this time was waited, beside those that take any lock, for the kernel's; else ""."""

    @property
    def with_others_mean(self) -> float:
        """Mean of the waits that were not `alone`, in ns; 0 if all were."""
        number = self.judged - self.alone
        return (self.judged_time - self.alone_time) / number if number > 0 else 0.0

    @property
    def factor(self) -> float | None:
        """The mean wait while others wait, too, in terms of that of waits `alone`; None if there was none of either."""
        if not self.alone_time or self.judged <= self.alone:
            return None
        return self.with_others_mean / (self.alone_time / self.alone)

    @property
    def mean_waiting(self) -> float | None:
        """Threads that wait, while one does. It is also the mean wait in terms of the mean time from one's turn to the
        next (J. Little, 1961). None if it is not known."""
        return self.judged_time / self.busy if self.busy else None

    @property
    def is_lock_like(self) -> bool:
        """Whether it is a semaphore that is used as a lock: whoever waits for it gives it back, too. Python's locks
        are such ones (Python/thread_pthread.h)."""
        if self.kind != SEMAPHORE or len(self.waiters) < 2:
            return False
        waiters = {(thread.pid, thread.tid) for thread in self.waiters}
        both = [holder for holder in self.holders if (holder.pid, holder.tid) in waiters]
        if not self.more_waiters and len(both) >= max(_BOTH, len(waiters) - 1):
            return True
        by_waiters = sum(holder.time for holder in both)
        return by_waiters >= _BY_WAITERS * max(sum(holder.time for holder in self.holders), self.time // 2, 1)

    @property
    def is_contention(self) -> bool | None:
        """Whether its waits are for somebody who has it; None: not known."""
        if self.owned_by == KERNEL or self.kind in CONTENDED or self.is_lock_like:
            return True
        return False if self.kind in SIGNALLED else None


MOST_LOCKS = 1000
"""Locks with less time are put together."""
MOST_THREADS = 64
MOST_PLACES = 8
OTHER_LOCKS = "[other locks]"
