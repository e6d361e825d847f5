"""The kernel's memory, for real; what a search finds there is for the tests of the loader and of the probes."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.kernel.libbpf import BpfError
from stallscope.tracers.unwind import store
from stallscope.tracers.unwind.chunks import SHARD_WORDS, Chunk, Piece
from stallscope.tracers.unwind.store import MAX_MAPPINGS, Store, Wanted

MB = 1 << 20
NO_PREALLOC = 1
"""BPF_F_NO_PREALLOC of include/uapi/linux/bpf.h."""


@pytest.fixture
def made(loaded: Object) -> Iterator[Store]:
    store = Store(loaded, 2 * MB)
    yield store
    store.close()


def chunk(words: int, mark: int = 7) -> Chunk:
    """One piece of rows and an index of one page."""
    rows = np.full(words, mark, np.uint64)
    return Chunk(0, np.array([3], np.uint64), np.array([5], np.uint64), [Piece(0, 1, rows)])


def descriptor(loaded: Object, table: int) -> tuple[int, ...]:
    found = loaded.find_map("unwind_tables").lookup(table.to_bytes(4, "little"))
    assert found is not None
    return struct.unpack("<4I", found)


def word(made: Store, at: int) -> int:
    return int(made._shards[at // SHARD_WORDS][at % SHARD_WORDS])


def spaces(loaded: Object) -> dict[int, tuple[int, ...]]:
    items = loaded.find_map("unwind_spaces").items()
    return {int.from_bytes(key, "little"): struct.unpack("<4I", value) for key, value in items}


def test_a_chunk_is_laid_out_as_the_probes_read_it(made: Store, loaded: Object) -> None:
    table = made.new_table()
    assert table >= 2
    assert not made.is_filled(table)
    assert made.fill(table, chunk(10))
    assert made.is_filled(table)
    index, pages, used, empty = descriptor(loaded, table)
    assert (pages, used, empty) == (1, 0, 0)
    entry = word(made, index)
    assert entry >> 32 == 5
    assert word(made, (entry & 0xFFFFFFFF) - 3) == word(made, (entry & 0xFFFFFFFF) + 6) == 7


def test_memory_is_bounded_and_comes_back_when_no_walk_reads_there(
    made: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    settle, put = Store.settle, Store._put_shard
    monkeypatch.setattr(Store, "_put_shard", lambda self, number: (order.append("waited"), put(self, number)))
    monkeypatch.setattr(Store, "settle", lambda self: (order.append("settle"), settle(self))[1])
    tables = [made.new_table() for _ in range(3)]
    assert made.fill(tables[0], chunk(SHARD_WORDS - 1))
    assert made.fill(tables[1], chunk(SHARD_WORDS - 1))
    assert made.bytes == 2 * MB
    assert not made.fill(tables[2], chunk(1))
    order.clear()
    made.empty(tables[0])
    assert order == []
    assert made.fill(tables[2], chunk(SHARD_WORDS - 1))
    assert order == ["settle", "waited"]
    assert made.tables_in_memory == 2


def test_what_did_not_fit_leaves_nothing_behind(made: Store, loaded: Object) -> None:
    table, whole = made.new_table(), chunk(SHARD_WORDS // 2)
    pieces = [whole.pieces[0]] * 5
    assert not made.fill(table, whole._replace(pieces=pieces))
    assert descriptor(loaded, table)[1] == 0
    assert made.fill(table, whole._replace(pieces=pieces[:3]))


def test_holes_join_again(made: Store) -> None:
    tables = [made.new_table() for _ in range(8)]
    for table in tables:
        assert made.fill(table, chunk(SHARD_WORDS // 4 - 1))
    for table in tables[1::2] + tables[::2]:
        made.empty(table)
    made.settle()
    assert made.fill(tables[0], chunk(SHARD_WORDS - 1))
    assert made.fill(tables[1], chunk(SHARD_WORDS - 1))


def test_the_longest_unused_come_first(made: Store, loaded: Object) -> None:
    tables = [made.new_table() for _ in range(4)]
    used = loaded.find_map("unwind_tables")
    for table, epoch in zip(tables, (5, 2, 9, 4), strict=True):
        made.fill(table, chunk(1))
        index, pages, _, _ = descriptor(loaded, table)
        used.update(table.to_bytes(4, "little"), struct.pack("<4I", index, pages, epoch, 0))
    assert made.oldest(10, epoch=9) == [tables[1], tables[3], tables[0]]
    assert made.oldest(2, epoch=9) == [tables[1], tables[3]]
    assert made.oldest(2, epoch=4) == [tables[1]]


def test_empty_tables_are_marked(made: Store, loaded: Object) -> None:
    table = made.new_table()
    made.mark_empty(table)
    assert descriptor(loaded, table) == (0, 0, 0, 1)


def test_mappings_of_a_process(made: Store, loaded: Object) -> None:
    entries = np.array([[0x1000, 5, 2], [0x2000, 0, 0]], np.uint64)
    assert made.set_space(77, entries)
    first, count, version, _ = spaces(loaded)[77]
    assert [word(made, first + i) for i in range(6)] == [0x1000, 5, 2, 0x2000, 0, 0]
    assert (count, version) == (2, 1)
    assert made.set_space(77, entries[:1])
    again, count, version, _ = spaces(loaded)[77]
    assert again != first
    assert (count, version) == (1, 2)
    made.drop_space(77)
    made.drop_space(78)
    assert spaces(loaded) == {}
    assert made.set_space(79, np.zeros((0, 3), np.uint64))
    assert spaces(loaded)[79][1] == 0


def test_mappings_that_a_child_inherited_stay(made: Store, loaded: Object) -> None:
    """The child's entry is a copy of its parent's, as scope_fork makes it."""
    made.set_space(7, np.array([[0x1000, 0, 2]], np.uint64))
    key = (8).to_bytes(4, "little")
    loaded.find_map("unwind_spaces").update(
        key, loaded.find_map("unwind_spaces").lookup((7).to_bytes(4, "little")) or b""
    )
    first = spaces(loaded)[8][0]
    made.drop_space(7)
    made.settle()
    made.set_space(9, np.array([[0x5000, 0, 3]], np.uint64))
    assert word(made, first) == 0x1000
    made.drop_space(8)
    made.settle()
    made.set_space(10, np.array([[0x6000, 0, 3]], np.uint64))
    assert word(made, first) == 0x6000


def test_more_mappings_than_a_shard_holds_are_cut(made: Store, loaded: Object) -> None:
    assert made.set_space(7, np.ones((MAX_MAPPINGS + 5, 3), np.uint64))
    assert spaces(loaded)[7][1] == MAX_MAPPINGS


def test_what_walks_missed_is_told_once(made: Store, loaded: Object) -> None:
    for key in (4711, 1 << 32 | 12, 1 << 32 | 13):
        loaded.find_map("unwind_wanted").update(key.to_bytes(8, "little"), bytes(4))
    assert made.take_wanted() == Wanted({4711}, {12, 13})
    assert made.take_wanted() == Wanted(set(), set())


def test_no_more_memory_is_a_smaller_budget(loaded: Object, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Store(loaded, 64 * MB)

    def refuse(name: str, size: int) -> None:
        raise BpfError(f"map {name}", errno.ENOMEM, [])

    monkeypatch.setattr(store, "MappedArray", refuse)
    tables = [made.new_table() for _ in range(2)]
    assert made.fill(tables[0], chunk(SHARD_WORDS - 1))
    assert not made.fill(tables[1], chunk(1))
    assert "Cannot allocate memory" in made.problem
    made.close()


def test_no_descriptor_is_left(loaded: Object) -> None:
    before = os.listdir("/proc/self/fd")
    made = Store(loaded, 4 * MB)
    made.fill(made.new_table(), chunk(SHARD_WORDS - 1))
    made.fill(made.new_table(), chunk(SHARD_WORDS - 1))
    made.close()
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_more_processes_than_the_map_holds_end_no_trace(made: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = np.array([[0x1000, 0, 2]], np.uint64)
    before = made._holes[0][:]

    def refuse(key: bytes, value: bytes) -> None:
        raise BpfError("map unwind_spaces", errno.E2BIG, [])

    monkeypatch.setattr(made._spaces_map, "update", refuse)
    assert made.set_space(7, entries)
    assert "unwind_spaces" in made.problem
    assert made._holes[0] == before


def test_hashes_are_allocated_before_they_are_used(loaded: Object) -> None:
    """Kernels before 6.1 let no program that sleeps use another one, and warn of one in a raw tracepoint."""
    for name in ("unwind_spaces", "unwind_wanted"):
        info = dict(
            line.split(":", 1)
            for line in Path(f"/proc/self/fdinfo/{loaded.find_map(name).fd}").read_text().splitlines()
            if ":" in line
        )
        assert not int(info["map_flags"], 0) & NO_PREALLOC, name


def test_a_call_that_was_interrupted_may_have_views(loaded: Object) -> None:
    """Ctrl-C leaves its frame, and with it numpy's views, in the traceback while all is closed."""
    made = Store(loaded, 4 * MB)
    views = [memoryview(array.memory) for array in made._arrays] + [memoryview(made._memory)]
    made.close()
    assert all(view.nbytes for view in views)
    before = os.listdir("/proc/self/fd")
    views.clear()
    assert len(os.listdir("/proc/self/fd")) <= len(before)
