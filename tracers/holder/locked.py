"""Address spaces that stay locked: while there is one, no probe on a file is made or removed.

For each probe the kernel takes dup_mmap_sem, and then the mmap_lock of each process that maps the file
(register_for_each_vma() of kernel/events/uprobes.c), neither of which a signal interrupts. A fork takes dup_mmap_sem
and then its process's mmap_lock (dup_mm() of kernel/fork.c; dup_mmap() before 6.13). So a user who keeps the lock of
a process of his, by a page that never comes, would stop whoever makes a probe, and all forks of the host for as long:
in a process that maps the file, or in one that he forks. Who holds the lock as a reader, and waits for such a page,
cannot be found by another reader. So `scope_locked` of bpf/scope.bpf.c looks at the lock itself.

That is so at one moment. A process has the lock very often, but seldom all the time: it is locked if it is found so
again and again, without a new writer.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import NamedTuple

_RECORD = struct.Struct("=QQII")
"""struct locked_record of bpf/include/records.h."""
_WRITER = 1
"""Bit of the lock's count: RWSEM_WRITER_LOCKED of kernel/locking/rwsem.c."""
_FIRST, _LONGEST = 0.0005, 0.01
"""Seconds between two looks."""


class Lock(NamedTuple):
    """Lock of an address space, at one moment."""

    tgid: int
    state: int
    """Count of the lock."""
    writes: int

    def has_moved(self, now: Lock) -> bool:
        """Whether a writer has got it since then, or has left it."""
        return now.writes != self.writes or (now.state ^ self.state) & _WRITER != 0


def parse(data: bytes) -> dict[int, Lock]:
    """The locks by address space."""
    return {mm: Lock(tgid, state, writes) for mm, state, tgid, writes in _RECORD.iter_unpack(data)}


def stay_locked(look: Callable[[], bytes], seconds: float) -> list[int]:
    """The processes whose address space stays locked for so long; as soon as there is none, none."""
    found = parse(look())
    until, pause = time.monotonic() + seconds, _FIRST
    while found and time.monotonic() < until:
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST)
        now = parse(look())
        found = {mm: lock for mm, lock in found.items() if mm in now and not lock.has_moved(now[mm])}
    return sorted({lock.tgid for lock in found.values()})
