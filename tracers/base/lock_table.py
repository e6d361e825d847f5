"""Reads /proc/locks: which process waits for a lock on a file, and which one has it.

The format is that of `lock_get_status` in the kernel's fs/locks.c: below each lock that somebody has come those who
wait for it, behind an arrow. The pids are those of processes, not of threads, as the pid namespace sees them in which
/proc was mounted. Of a lock of an open file (F_OFD_SETLK) the kernel tells no process, -1, and of one that another
host has a negative number.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...converters.model.file_locks import DELEGATION, FCNTL, FLOCK, LEASE, OPEN_FILE, READ, WRITE

MOST = 4096
"""Waiting processes; later ones are left out."""
_COMPARISONS = 1 << 18
"""Comparisons of a lock with a wish at a look, about 0.3 s of a core: there may be thousands of both on one file."""
NOT_TOLD = 0
"""The pid of a process that the kernel does not tell."""
_KINDS = {b"FLOCK": FLOCK, b"POSIX": FCNTL, b"OFDLCK": OPEN_FILE, b"LEASE": LEASE, b"DELEG": DELEGATION}
_ACCESSES = {b"READ": READ, b"WRITE": WRITE}
ARROW = b"->"
_MOST_PID = 1 << 22
"""PID_MAX_LIMIT (include/linux/threads.h)."""
_END = 1 << 63


class Lock(NamedTuple):
    """A lock, or the wish for one. Bytes from ``first`` to ``last``, 0 for the end of the file."""

    kind: str
    access: str
    pid: int
    device: int
    """major << 20 | minor, as the kernel's own numbers are."""
    inode: int
    first: int
    last: int


class Blocked(NamedTuple):
    """A process that waits for a lock that another one has."""

    waiter: Lock
    owner: Lock
    others: int = 0
    """Number of other processes with locks of their own that are in its way, too: see `InTheWay.with_others`."""


class Refused(NamedTuple):
    """Requests for a lock that a thread has made in vain, without waiting."""

    wish: Lock
    number: int
    at: int
    """Time of the last one: CLOCK_MONOTONIC ns."""
    tid: int


class InTheWay:
    """Locks that are in the way of wishes, in the table of one look. Each wish is compared with all locks on its file
    once, whoever has it."""

    def __init__(self, text: bytes, wishes: Iterable[Lock]) -> None:
        """``wishes``: all that will be asked for, or others for the same files."""
        self._locks = _locks_on(wishes, text)
        self._known: dict[Lock, _Compared] = {}
        self._left = _COMPARISONS
        self.left_out = 0
        """Number of wishes that would have been too many to compare."""

    def refused(self, requests: Iterable[Refused]) -> list[Blocked]:
        """Processes whose requests were refused, with who has a lock that is in the way; `NOT_TOLD` if nobody has one
        any more. Who has got it meanwhile is left out."""
        found = []
        for wish in (each.wish for each in requests):
            compared = self._compared(wish)
            if compared and wish.pid not in compared.enough:
                others = (lock for pid, lock in compared.owners.items() if pid != wish.pid)
                found.append(Blocked(wish, next(others, wish._replace(pid=NOT_TOLD))))
        return found[:MOST]

    def with_others(self, blocked: Iterable[Blocked]) -> list[Blocked]:
        """Processes that wait, with the numbers of others whose locks are in the way: of those that read, each has
        one."""
        found = []
        for each in blocked:
            waiter, owner, _ = each
            compared = self._compared(waiter)
            owners = compared.owners if compared else {}
            known = {waiter.pid, owner.pid, NOT_TOLD} & owners.keys()
            found.append(each._replace(others=len(owners) - len(known)))
        return found

    def _compared(self, wish: Lock) -> _Compared | None:
        key = wish._replace(pid=NOT_TOLD)
        if key not in self._known:
            there = self._locks[wish.device, wish.inode]
            if len(there) > self._left:
                self.left_out += 1
                return None
            self._left -= len(there)
            self._known[key] = _compared(there, wish)
        return self._known[key]


class _Compared(NamedTuple):
    owners: dict[int, Lock]
    """The first lock in the way of each process that has one, by its pid, in the order of the table."""
    enough: set[int]
    """Processes with locks that are enough for the wish."""


def _compared(locks: list[Lock], wish: Lock) -> _Compared:
    owners: dict[int, Lock] = {}
    enough = set()
    for lock in locks:
        if _is_in_the_way(lock, wish):
            owners.setdefault(lock.pid, lock)
        if is_enough(lock, wish):
            enough.add(lock.pid)
    return _Compared(owners, enough)


def _locks_on(wishes: Iterable[Lock], text: bytes) -> dict[tuple[int, int], list[Lock]]:
    """Locks that somebody has on the files that are wished for, by device and inode."""
    locks: dict[tuple[int, int], list[Lock]] = {(wish.device, wish.inode): [] for wish in wishes}
    files = {b"%02x:%02x:%d" % (device >> 20, device & 0xFFFFF, inode) for device, inode in locks}
    for line in text.split(b"\n")[:-1] if files else ():
        words = line.split(maxsplit=8)
        if len(words) > 5 and words[1] != ARROW and words[5] in files and (lock := lock_of(words[1:])):
            locks[lock.device, lock.inode].append(lock)
    return locks


def _is_in_the_way(lock: Lock, wish: Lock) -> bool:
    """Whether the kernel refuses a wish for the sake of this lock. Locks of flock(2) and of fcntl(2) do not see each
    other; those of open files are like those of processes."""
    if (lock.kind == FLOCK) != (wish.kind == FLOCK) or WRITE not in (lock.access, wish.access):
        return False
    return lock.first <= (wish.last or _END) and wish.first <= (lock.last or _END)


def is_enough(lock: Lock, wish: Lock) -> bool:
    """Whether who has this lock has what it wished for. A lock to read, or of a part, is not enough for a wish to
    write, or for the whole: SQLite's writers have the former while they wait for the latter."""
    if lock.kind != wish.kind or (wish.access == WRITE and lock.access == READ):
        return False
    return lock.first <= wish.first and (wish.last or _END) <= (lock.last or _END)


def blocked_in(text: bytes) -> list[Blocked]:
    """Processes that wait. One that waits behind another one that waits is behind the same owner: the kernel puts it
    there only if the owner's lock is in its way, too. Malformed lines are left out, with those below them."""
    found: list[Blocked] = []
    owner, number = None, b""
    lines = text.split(b"\n")
    for line in lines[:-1]:  # what follows the last end of a line is cut off
        words = line.split(maxsplit=9)
        if len(words) > 1 and words[1] == ARROW:
            waiter = lock_of(words[2:])
            if waiter and owner and words[0] == number:
                found.append(Blocked(waiter, owner))
                if len(found) == MOST:
                    break
        else:
            owner, number = lock_of(words[1:]), words[0] if words else b""
    return found


def lock_of(words: list[bytes]) -> Lock | None:
    """A lock from the words behind its number; None if they are malformed, or for no file."""
    if len(words) != 7 or words[0] not in _KINDS or words[2] not in _ACCESSES:
        return None
    kind = _KINDS[words[0]]
    device, inode = _file(words[4])
    first = _number(words[5])
    last = 0 if words[6] == b"EOF" else _number(words[6])
    pid = _pid(words[3])
    if pid is None or device < 0 or inode < 0 or first < 0 or last < 0:
        return None
    return Lock(kind, _ACCESSES[words[2]], pid, device, inode, first, last)


def _pid(word: bytes) -> int | None:
    digits = word.removeprefix(b"-")
    if not digits.isdigit() or len(digits) > 10:
        return None
    pid = int(word)
    return pid if 0 < pid <= _MOST_PID else NOT_TOLD


def _file(word: bytes) -> tuple[int, int]:
    """``08:01:99``: the numbers of the device are hexadecimal."""
    parts = word.split(b":")
    if len(parts) != 3 or not all(0 < len(part) <= 8 for part in parts[:2]):
        return -1, -1
    try:
        major, minor = (int(part, 16) for part in parts[:2])
    except ValueError:
        return -1, -1
    return (major << 20 | minor) if min(major, minor) >= 0 and minor < 1 << 20 else -1, _number(parts[2])


def _number(word: bytes) -> int:
    """A number without a sign that fits into 64 bits; -1 if it is none."""
    if not word.isdigit() or len(word) > 20:
        return -1
    number = int(word)
    return number if number < _END << 1 else -1
