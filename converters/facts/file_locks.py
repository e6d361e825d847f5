"""Holders of the locks on files for which threads wait, as was seen now and then."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from ..base.text import json_text
from ..model.file_locks import FileLock
from . import thresholds
from .wait_functions import LOCK_OF_FILE, LOCKS_BY_TIMER
from .waits import Wait

CALLS = frozenset(("flock", "fcntl"))
"""System calls that wait for such locks."""
_POLLED = frozenset((LOCK_OF_FILE, *LOCKS_BY_TIMER))
"""Locks that are asked for again and again: those of SQLite's databases are locks on their files, too."""


def is_for_file(wait: Wait) -> bool:
    """Whether a wait for a lock is for one on a file: in the kernel, or asleep between two requests."""
    return wait.call in CALLS or wait.lock in _POLLED


class FileHolder(NamedTuple):
    """A process that has a lock on a file for which others wait. Names are unescaped (hostile)."""

    process: str
    """"" if only its pid is known."""
    pid: int
    is_traced: bool
    took_and_ended: bool
    """Another one took the lock and ended: this one has its open file; or nobody is known any more."""
    sharers: int
    """Other processes that have the open file, and with it the lock."""
    others: int
    """Other processes that have such a lock, too."""
    path: str
    """"" if it is not known."""
    first: int
    """Byte."""
    last: int
    """Byte; 0: the end of the file."""
    seen: int
    """Number of looks at which it was seen to have the lock."""
    of: int
    """Number of looks at which somebody waited for the lock."""
    looks: int

    @property
    def always(self) -> bool:
        """Whether it has it whenever somebody looked, and there was always somebody who waited."""
        return self.seen == self.of == self.looks >= thresholds.LOOKS


def file_holder(
    file_locks: Sequence[FileLock], waiting: Collection[int], traced: Collection[int], waits: int
) -> FileHolder | None:
    """Holder of the lock for which these processes wait, for most of the time; None if nobody is known to, or they take
    turns. ``waits``: of each. Pids are the kernel's."""
    found: dict[int, list[FileLock]] = defaultdict(list)
    times: dict[int, int] = defaultdict(int)
    for each in file_locks:
        if each.pid in waiting:
            times[each.pid] += each.seen
            if each.owner_pid:
                found[each.owner_pid].append(each)
    if not found:
        return None
    of = max(times.values())
    seen = {owner: max(each.seen for each in entries) for owner, entries in found.items()}
    owner = max(seen, key=lambda pid: (seen[pid], -pid))
    made = _holder(found[owner], traced, seen[owner], of)
    # Who waits for it, too, has it at the looks at which the others wait: these are no measure.
    whole = made.looks if owner in waiting else of
    # Of short waits only some were looked at.
    noise = 1 / math.sqrt(whole) if waits > whole else 0
    return made if made.seen >= (thresholds.HELD_MOSTLY + noise) * whole else None


def _holder(entries: Sequence[FileLock], traced: Collection[int], seen: int, of: int) -> FileHolder:
    most = max(entries, key=lambda each: (each.seen, bool(each.path), -each.pid))
    sharers = max(each.sharers for each in entries)
    looks = max(each.looks for each in entries)
    is_traced = most.owner_pid in traced
    where = most.path, most.first, most.last
    return FileHolder(
        most.owner, most.owner_pid, is_traced, most.owner_ended, sharers, most.others, *where, seen, of, looks
    )


class InCycle(NamedTuple):
    """A process that waits for the lock of the next one. Names are unescaped (hostile)."""

    process: str
    pid: int
    path: str
    """Path of the file for whose lock it waits; "" if it is not known."""


def cycle_of(file_locks: Iterable[FileLock]) -> tuple[InCycle, ...]:
    """Processes each of which waits all the time for a lock that the next one has, and the last one for the first's;
    () if there are none. The kernel finds such cycles only among the locks of fcntl(2) that processes have."""
    waits = {
        each.pid: each
        for each in file_locks
        if each.owner_pid and each.seen == each.looks >= thresholds.LOOKS and (each.owner or not each.owner_ended)
    }
    for first in sorted(waits):
        way = [first]
        while (owner := waits[way[-1]].owner_pid) in waits and owner not in way:
            way.append(owner)
        if owner == first and len(way) > 1:
            return tuple(InCycle(waits[pid].process, pid, waits[pid].path) for pid in way)
    return ()


def file_lock_json(lock: FileLock) -> dict[str, Any]:
    """Times in ns from the beginning of the trace."""
    return {
        "kind": json_text(lock.kind),
        "file": json_text(lock.path),
        "device": lock.device_numbers,
        "inode": lock.inode,
        "first_byte": lock.first,
        "last_byte": lock.last or None,
        "access": json_text(lock.access),
        "process": json_text(lock.process),
        "pid": lock.pid,
        "owner": json_text(lock.owner),
        "owner_pid": lock.owner_pid or None,
        "owner_ended": lock.owner_ended,
        "sharers": lock.sharers,
        "others": lock.others,
        "seen": lock.seen,
        "looks": lock.looks,
        "mean_waiting": round(lock.waiting / lock.busy, 3) if lock.busy else None,
        "requests": lock.requests,
        "askers": [asdict(each) for each in lock.askers],
        "first_seen_ns": lock.first_seen,
        "last_seen_ns": lock.last_seen,
    }
