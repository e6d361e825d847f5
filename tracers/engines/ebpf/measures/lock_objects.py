"""Objects that hold a lock of the kernel in allocated memory: the map ``lock_objects`` of bpf/locks.bpf.c."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from ....kernel.kernel_types import CACHE_OF_MEMORY

ASKED = 900001
"""The number that stands for the kernel's function in the programs."""
ASKS = CACHE_OF_MEMORY
PARTS = (
    "",
    "mm_struct.mmap_lock",
    "signal_struct.cred_guard_mutex",
    "signal_struct.exec_update_lock",
)
"""enum lock_part."""
OBJECT = struct.Struct("<Q10I32s")
"""struct lock_object."""
_ORDER_SHIFT = 16
"""OO_SHIFT of mm/slub.c: above it is the order of a slab, below it the number of its objects."""


class LockObject(NamedTuple):
    """Sizes in bytes."""

    cache: int
    """Address of the cache that the memory is from; 0: of none, or not known."""
    size: int
    """Bytes from one object of the cache to the next one."""
    object_size: int
    red_left_pad: int
    """Bytes before each object."""
    orders: tuple[int, int]
    """A slab is that power of two of pages: as a rule, and where memory was short."""
    is_merged: bool
    """The kernel uses one cache under several names; only one of them is known."""
    part: int
    """Index of `PARTS`: which part of the waiter's own data it is; 0: of none."""
    tgid: int
    """Process that the object belongs to; 0: several processes, or not known."""
    changed: bool
    """The lock's address was used for several things."""
    name: str
    """Name of the cache."""

    @staticmethod
    def parse(data: bytes) -> LockObject:
        cache, size, object_size, pad, *orders, uses, part, tgid, changed, _, name = OBJECT.unpack(data)
        merged = 1 < uses < 1 << 31  # a negative number: one that is never merged
        return LockObject(
            cache,
            size,
            object_size,
            pad,
            (orders[0] >> _ORDER_SHIFT, orders[1] >> _ORDER_SHIFT),
            merged,
            part,
            tgid,
            bool(changed),
            name.split(b"\0")[0].decode("utf-8", "backslashreplace"),
        )

    def joined(self, later: LockObject) -> LockObject:
        """Joins both, which one address was."""
        changed = self.changed or later.changed or self.cache != later.cache
        changed = changed or bool(self.part and later.part and self.part != later.part)
        if not (self.part and later.part):
            known = self if self.part else later
            return known._replace(changed=changed)
        return self._replace(changed=changed, tgid=self.tgid if self.tgid == later.tgid else 0)


def join_objects(known: dict[int, LockObject], found: Iterable[tuple[bytes, bytes]], most: int) -> int:
    """Adds what the map holds, up to ``most`` locks; returns how many found no room."""
    left_out = 0
    for key, value in found:
        lock, later = int.from_bytes(key, "little"), LockObject.parse(value)
        if earlier := known.get(lock):
            known[lock] = earlier.joined(later)
        elif len(known) < most:
            known[lock] = later
        else:
            left_out += 1
    return left_out
