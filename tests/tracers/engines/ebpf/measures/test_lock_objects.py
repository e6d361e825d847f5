"""Objects that hold a lock of the kernel: the records, and two of them for one address."""

from __future__ import annotations

import pytest
from stallscope.tracers.engines.ebpf.measures.lock_objects import OBJECT, LockObject, join_objects


def packed(cache: int = 9, part: int = 0, tgid: int = 0, uses: int = 1, changed: int = 0) -> bytes:
    return OBJECT.pack(
        cache, 768, 744, 0, 3 << 16 | 42, 1 << 16 | 10, uses, part, tgid, changed, 0, b"shmem_inode_cache"
    )


def test_record() -> None:
    found = LockObject.parse(packed())
    assert (found.cache, found.size, found.object_size, found.orders) == (9, 768, 744, (3, 1))
    assert (found.name, found.is_merged, found.changed) == ("shmem_inode_cache", False, False)


@pytest.mark.parametrize(("uses", "merged"), [(1, False), (3, True), (0xFFFFFFFF, False), (0, False)])
def test_merged_caches(uses: int, merged: bool) -> None:
    assert LockObject.parse(packed(uses=uses)).is_merged == merged


def test_one_address_twice() -> None:
    unknown, ours, others = (LockObject.parse(packed(part=part, tgid=tgid)) for part, tgid in ((0, 0), (1, 7), (1, 8)))
    assert unknown.joined(ours) == ours.joined(unknown) == ours.joined(ours) == ours
    assert (ours.joined(others).tgid, ours.joined(others).changed) == (0, False)
    assert ours.joined(others).joined(ours).tgid == 0
    assert ours.joined(LockObject.parse(packed(part=2, tgid=7))).changed
    assert ours.joined(LockObject.parse(packed(cache=5))).changed
    assert LockObject.parse(packed(changed=1)).joined(unknown).changed


def test_table_is_bounded() -> None:
    known: dict[int, LockObject] = {}
    rows = [(i.to_bytes(8, "little"), packed()) for i in range(3)]
    assert join_objects(known, rows, 2) == 1
    assert join_objects(known, rows[:2], 2) == 0
    assert known.keys() == {0, 1}
