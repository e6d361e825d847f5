"""Type and field of the kernel's locks in allocated memory."""

from __future__ import annotations

import mmap
from collections.abc import Callable

from ...kernel.kernel_types import KernelTypes
from .measures.lock_objects import PARTS, LockObject

_STRUCTS = {
    "anon_vma": "anon_vma",
    "bdev_cache": "bdev_inode",
    "btrfs_inode": "btrfs_inode",
    "dentry": "dentry",
    "ext4_inode_cache": "ext4_inode_info",
    "f2fs_inode_cache": "f2fs_inode_info",
    "fat_inode_cache": "msdos_inode_info",
    "files_cache": "files_struct",
    "filp": "file",
    "fs_cache": "fs_struct",
    "fuse_inode": "fuse_inode",
    "hugetlbfs_inode_cache": "hugetlbfs_inode_info",
    "inode_cache": "inode",
    "kernfs_node_cache": "kernfs_node",
    "mm_struct": "mm_struct",
    "mqueue_inode_cache": "mqueue_inode_info",
    "nfs_inode_cache": "nfs_inode",
    "ovl_inode": "ovl_inode",
    "proc_inode_cache": "proc_inode",
    "shmem_inode_cache": "shmem_inode_info",
    "sighand_cache": "sighand_struct",
    "signal_cache": "signal_struct",
    "sock_inode_cache": "socket_alloc",
    "v9fs_inode_cache": "v9fs_inode",
    "vm_area_struct": "vm_area_struct",
    "xfs_inode": "xfs_inode",
}
"""Structure that the kernel allocates from a cache, by the cache's name."""
_LONGER = {"mm_struct"}
"""Structures that end with masks of cores, whose length is known at boot: sizeof() is without them."""
_LOCKS = {
    "mutex": ("mutex",),
    "rwsem": ("rw_semaphore",),
    "percpu_rwsem": ("percpu_rw_semaphore",),
    "rt_mutex": ("rt_mutex_base", "rt_mutex"),
}
"""Structures of a lock, by its kind."""


class LockFields:
    """Nothing is guessed: a field is named if the cache has one name, its objects have the structure's size, and the
    structure has a lock of this kind just there. Else only the cache is."""

    def __init__(self, types: KernelTypes) -> None:
        self._types = types

    def name(self, address: int, kind: str, found: LockObject, told: Callable[[int], str]) -> str:
        """``mm_struct.mmap_lock``, with what ``told`` says of the address unless it is known to be one process's own.

        ``in kmalloc-2k #1`` if only the cache is known; "" without that.
        """
        if found.changed:
            return ""
        if found.part:
            return PARTS[found.part] if found.tgid else f"{PARTS[found.part]} {told(address)}"
        if not found.name:
            return ""
        merged = " (merged)" if found.is_merged else ""
        return f"{self._field(address, kind, found) or f'in {found.name}{merged}'} {told(address)}"

    def _field(self, address: int, kind: str, found: LockObject) -> str:
        struct = _STRUCTS.get(found.name, "")
        size = self._types.size(struct) if struct else 0
        if not size or found.is_merged or not found.size:
            return ""
        if found.object_size != size and not (struct in _LONGER and found.object_size > size):
            return ""
        fields = {self._types.field_at(struct, at, _LOCKS.get(kind, ())) for at in offsets(address, found)} - {""}
        return f"{struct}.{fields.pop()}" if len(fields) == 1 else ""


def offsets(address: int, found: LockObject) -> set[int]:
    """Offsets that the address can have in its object: slabs begin at multiples of their size, and have one of two."""
    starts = {address & -(mmap.PAGESIZE << order) for order in found.orders}
    return {(address - start) % found.size - found.red_left_pad for start in starts}
