"""The maps and records of bpf/locks.bpf.c, and what the measure of locks hands over."""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .protocol import Row

KIND_SHIFT = FLAGS_SHIFT = 8
PRIVATE, PI, SEVERAL, LOOKS_LIKE_MUTEX, OF_KERNEL = 1, 2, 4, 8, 128
"""enum lock_kind."""
SPIN_FLAG, READ, WRITE, RT, PERCPU, MUTEX = 1, 2, 4, 8, 16, 32
"""LCB_F_… of include/trace/events/lock.h: flags of a lock of the kernel."""
UNREADABLE = "locks in shared memory of processes that were gone"
"""Kind of a loss."""
SMALL_TABLE = 4
SPIN_SLOTS, SPIN_FRAMES = 256, 12

SUM = struct.Struct("<3Q")
WAITING = struct.Struct("<QQ4IQQ56x")
"""struct lock_wait, without what it knows of the last wait."""
HOLDER = struct.Struct("<QIIIIQQ5I4x")
"""struct holder_key."""
QUEUE_KEY = struct.Struct("<QII")
QUEUE = struct.Struct("<5Q")
SHARED_WORD = struct.Struct("<QI4x")
RECORD = struct.Struct("<IIQ")
SPIN = struct.Struct(f"<5Q4I{SPIN_FRAMES}Q")
"""struct spin_sum."""


class LockSum(NamedTuple):
    """Waits that ended; times in ns."""

    time: int
    waits: int
    max: int

    def joined(self, other: LockSum) -> LockSum:
        """Of both."""
        return LockSum(self.time + other.time, self.waits + other.waits, max(self.max, other.max))


class LockWait(NamedTuple):
    """The waits of a thread in one place."""

    row: Row
    address: int
    kind: int
    sum: LockSum


class LockHolder(NamedTuple):
    """Waits of one process for one lock which one thread ended."""

    tgid: int
    """Of those who waited; 0: the lock is the kernel's."""
    address: int
    kind: int
    owner: int
    """The thread that had it, as the lock itself says; 0: it does not. Not checked yet."""
    second: int
    """Of the kernel's: the owner's process. Else the writer, if it is a rwlock."""
    row: Row
    """With the one that ended the waits as its waker."""
    sum: LockSum


class SharedWord(NamedTuple):
    """A futex in a file, or in other memory, that processes share."""

    dev: int
    inode: int
    offset: int
    path: str


@dataclass(frozen=True)
class LockRows:
    """What the measure of locks has counted."""

    waits: Sequence[LockWait] = ()
    holders: Sequence[LockHolder] = ()
    queues: Mapping[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """By address and process: the longest time in which somebody always waited, and the waits in it. Of a shared lock,
    0 is the process, and its number the address."""
    shared: Mapping[tuple[int, int], SharedWord] = field(default_factory=dict)
    """By process and address."""
    numbers: Mapping[SharedWord, int] = field(default_factory=dict)
    unreadable: Collection[tuple[int, int]] = ()
    """By process and address: what may be shared, of processes that were gone before it was known."""
    stacks: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Kernel stacks that only these rows have."""

    def rows(self) -> list[Row]:
        """All rows whose stacks, processes and wakers need names."""
        return [wait.row for wait in self.waits] + [holder.row for holder in self.holders]
