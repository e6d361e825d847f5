"""Types and fields of the kernel's locks."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

import pytest
from stallscope.tracers.engines.ebpf.lock_fields import LockFields, offsets
from stallscope.tracers.engines.ebpf.measures.lock_objects import LockObject

SLAB = 0xFFFF888100008000
FOUND = LockObject(1, 768, 744, 0, (3, 3), False, 0, 0, False, "shmem_inode_cache")
LOCK = SLAB + 5 * 768 + 280


class Types:
    """One of inodes, and one of memory."""

    def size(self, struct: str) -> int:
        return {"shmem_inode_info": 744, "mm_struct": 1472}.get(struct, 0)

    def field_at(self, struct: str, offset: int, wanted: Collection[str]) -> str:
        known = {
            ("shmem_inode_info", 280, "rw_semaphore"): "vfs_inode.i_rwsem",
            ("mm_struct", 184, "rw_semaphore"): "mmap_lock",
        }
        return next((known[struct, offset, kind] for kind in wanted if (struct, offset, kind) in known), "")


def name(address: int = LOCK, kind: str = "rwsem", **changes: Any) -> str:
    return LockFields(cast(Any, Types())).name(address, kind, FOUND._replace(**changes), "at {:#x}".format)


def test_type_and_field() -> None:
    assert name() == f"shmem_inode_info.vfs_inode.i_rwsem at {LOCK:#x}"
    assert name(LOCK + 16, red_left_pad=16) == f"shmem_inode_info.vfs_inode.i_rwsem at {LOCK + 16:#x}"


@pytest.mark.parametrize(
    "changes",
    [
        {"object_size": 752},
        {"object_size": 736},
        {"size": 0},
        {"name": "kmalloc-1k"},
        {"red_left_pad": 16},
        {"kind": "mutex"},
        {"kind": "of a kind that is not known"},
        {"address": LOCK + 8},
    ],
)
def test_nothing_is_guessed(changes: dict[str, Any]) -> None:
    where = changes.get("address", LOCK)
    assert name(**changes) == f"in {changes.get('name', 'shmem_inode_cache')} at {where:#x}"


def test_merged_caches_have_more_than_one_name() -> None:
    assert name(is_merged=True) == f"in shmem_inode_cache (merged) at {LOCK:#x}"


def test_memory_that_was_used_for_several_things() -> None:
    assert name(changed=True) == name(part=1, tgid=7, changed=True) == ""
    assert name(name="") == ""


def test_structure_with_masks_at_its_end() -> None:
    found = {"name": "mm_struct", "size": 1600, "address": SLAB + 3 * 1600 + 184}
    assert name(**found, object_size=1568).startswith("mm_struct.mmap_lock at")
    assert name(**found, object_size=1400).startswith("in mm_struct at")


def test_threads_own_lock() -> None:
    assert name(part=1, tgid=7) == "mm_struct.mmap_lock"
    assert name(part=1, tgid=0) == f"mm_struct.mmap_lock at {LOCK:#x}"


def test_slabs_of_two_sizes() -> None:
    """One that was made when memory was short begins elsewhere. Which one it is, only the field tells."""
    short = FOUND._replace(orders=(3, 1))
    lock = SLAB + 0x2000 + 2 * 768 + 280
    assert len(offsets(lock, short)) == 2
    assert name(lock, orders=(3, 1)).startswith("shmem_inode_info.vfs_inode.i_rwsem at")
    assert offsets(LOCK, FOUND) == {280}
