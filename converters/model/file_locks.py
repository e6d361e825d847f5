"""Locks on files for which processes waited, as /proc/locks shows them now and then: who waits for whom."""

from __future__ import annotations

from dataclasses import dataclass, field

FLOCK, FCNTL, OPEN_FILE, LEASE, DELEGATION = "flock", "fcntl", "OFD", "lease", "delegation"
"""Kinds: of flock(2); of fcntl(2) for a process, and for an open file; what servers of file systems take."""
KINDS = (FLOCK, FCNTL, OPEN_FILE, LEASE, DELEGATION)
READ, WRITE = "read", "write"


@dataclass(slots=True)
class LockAsker:
    """A thread that asked for a lock in vain, without waiting in the kernel."""

    tid: int
    requests: int
    gaps: int = 0
    """Number of requests of which the one before is known to have been refused shortly before."""
    gaps_ns: int = 0
    """Time between these pairs, added up."""


@dataclass(slots=True)
class FileLock:
    """A process that waited for a lock on a file that another one had."""

    kind: str
    """One of `KINDS`."""
    process: str
    """The name of the process that waited (hostile)."""
    pid: int
    owner: str
    """The name of the process that had the lock, with the script that it runs (hostile); "" if it is not known."""
    owner_pid: int
    """Pid of the owner, also if it has ended; 0 if it is not known."""
    owner_ended: bool
    """Whether the owner took the lock and ended: others have its open file."""
    sharers: int
    """Number of other processes that were seen to have the owner's open file, and with it the lock."""
    path: str
    """Path of the file, as the process that waited opened it (hostile); "" if it is not known."""
    device: int
    """Device of the super block: major << 20 | minor."""
    inode: int
    first: int
    """First byte of the owner's lock."""
    last: int
    """The last one; 0 if it goes on to the end of the file, however long that is."""
    access: str
    """`READ` or `WRITE`: how the owner has it."""
    seen: int
    """Number of looks at which the process was seen to wait for this owner."""
    looks: int
    """Number of looks while the trace went on."""
    first_seen: int
    """ns from the beginning of the trace until the first time."""
    last_seen: int
    """ns from the beginning of the trace until the last time."""
    busy: int = 0
    """Number of looks at which somebody waited for this lock of the file; 0 in old captures."""
    waiting: int = 0
    """Numbers of waits for it at these looks, added up."""
    requests: int = 0
    """Requests of the process for locks of this kind on the file that were refused, so that it did not wait in the
    kernel; 0 in old captures."""
    askers: list[LockAsker] = field(default_factory=list)
    """Threads that made these requests; [] in old captures."""
    others: int = 0
    """Number of other processes that have such a lock of their own, which was in the way, too, at the last of these
    looks; 0 in old captures."""

    @property
    def device_numbers(self) -> str:
        """``8:1``: major and minor, hexadecimal, as in /proc/locks."""
        return f"{self.device >> 20:x}:{self.device & 0xFFFFF:x}"
