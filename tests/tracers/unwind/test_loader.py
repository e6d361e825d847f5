"""Tables of real processes in the kernel's memory, for real."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mapped_files import Files
from stallscope.tracers.images.elf import BytesSource, ElfFile
from stallscope.tracers.images.maps import Mapping, read_maps
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.unwind import loader as module
from stallscope.tracers.unwind.cache import TableCache
from stallscope.tracers.unwind.chunks import SHARD_WORDS, TABLE_FIRST, TABLE_NONE, TABLE_UNMAPPED
from stallscope.tracers.unwind.compiler import compile_table
from stallscope.tracers.unwind.compiling import Compiling
from stallscope.tracers.unwind.loader import Loader
from stallscope.tracers.unwind.store import Store

Build = Callable[..., Path]
PATIENCE = 60.0


def entries(loader: Loader, loaded: Object, pid: int) -> list[tuple[int, int, int]]:
    value = loaded.find_map("unwind_spaces").lookup(pid.to_bytes(4, "little"))
    assert value is not None
    first, count, _, _ = struct.unpack("<4I", value)
    words = loader._store._shards[first // SHARD_WORDS][first % SHARD_WORDS :][: count * 3]
    return [(int(a), int(b), int(c)) for a, b, c in words.reshape(-1, 3)]


def look_up(loader: Loader, loaded: Object, pid: int, address: int) -> int:
    """The row of an address, as find_mapping() and find_row() in unwind.bpf.h come to it; -1: no mapping."""
    _, bias, table = max(entry for entry in entries(loader, loaded, pid) if entry[0] <= address)
    if table < TABLE_FIRST:
        return -1
    index, pages, _, _ = struct.unpack(
        "<4I", loaded.find_map("unwind_tables").lookup(table.to_bytes(4, "little")) or b""
    )
    place = (address - bias) & (1 << 64) - 1
    if place >> 9 >= pages:
        return 0
    word = loader._store._shards
    entry = int(word[(index + (place >> 9)) // SHARD_WORDS][(index + (place >> 9)) % SHARD_WORDS])
    first, count = entry & 0xFFFFFFFF, entry >> 32
    rows = word[first // SHARD_WORDS][first % SHARD_WORDS :][:count]
    held = rows[(rows & np.uint64(0xFFFFFFFF)) <= place]
    return int(held[-1]) >> 32 if len(held) else 0


def test_files_of_a_process_that_maps_very_many(
    make_loader: Callable[..., Loader], sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of them are asked for at a time, and none when the trace is to end."""
    monkeypatch.setattr(module, "_MOST_FILES", 1)
    files = {mapping.path for mapping in read_maps(sleeper.pid) if mapping.is_file}
    loader = make_loader()
    assert loader.read(sleeper.pid)
    assert len(loader._files) == 1
    assert loader.counts.left_out >= len(files) - 1 >= 2
    loader.is_over = lambda: True
    loader.tell(sleeper.pid)
    assert len(loader._files) == 1
    loader.is_over = lambda: False
    for _ in range(len(files)):
        loader.tell(sleeper.pid)
    assert len(loader._files) >= len(files)
    assert loader.counts.left_out == 0


def test_a_process_that_is_read_again_when_the_trace_is_to_end(
    make_loader: Callable[..., Loader], loaded: Object, sleeper: subprocess.Popen[bytes]
) -> None:
    """The process keeps the tables that are known. Its last stacks are walked with them."""
    loader = make_loader()
    assert loader.read(sleeper.pid)
    before = entries(loader, loaded, sleeper.pid)
    assert {table for _, _, table in before} > {TABLE_NONE, TABLE_UNMAPPED}
    loader.is_over = lambda: True
    assert loader.read(sleeper.pid)
    assert entries(loader, loaded, sleeper.pid) == before
    assert loader.counts.left_out == 1, "the vDSO, which was not found before either"


def test_every_address_of_a_process_has_its_files_row(
    make_loader: Callable[..., Loader], loaded: Object, sleeper: subprocess.Popen[bytes]
) -> None:
    loader = make_loader()
    assert loader.read(sleeper.pid)
    loader.wait(PATIENCE)
    mappings = [mapping for mapping in read_maps(sleeper.pid) if mapping.is_file]
    assert loader.counts.files == len({mapping.path for mapping in mappings}) >= 3
    for mapping in mappings:
        elf = ElfFile(BytesSource(Path(mapping.path).read_bytes()))
        table = compile_table(elf)
        addresses = np.arange(mapping.start, mapping.end, 97, dtype=np.uint64)
        vaddrs, known = elf.to_vaddrs(addresses - np.uint64(mapping.start) + np.uint64(mapping.offset))
        rows = table.find(vaddrs[known]).view("<u8").reshape(-1) >> np.uint64(32)
        found = [look_up(loader, loaded, sleeper.pid, int(address)) for address in addresses[known]]
        assert found == [int(row) for row in rows], mapping.path


def test_around_the_mappings_is_nothing(
    make_loader: Callable[..., Loader], loaded: Object, sleeper: subprocess.Popen[bytes]
) -> None:
    loader = make_loader()
    loader.read(sleeper.pid)
    mappings = read_maps(sleeper.pid)
    found = entries(loader, loaded, sleeper.pid)
    assert found == sorted(found)
    for mapping, behind in zip(mappings, [*mappings[1:], None], strict=True):
        if behind is None or behind.start > mapping.end:
            assert (mapping.end, 0, TABLE_UNMAPPED) in found
    assert (next(m.start for m in mappings if m.path == "[vdso]"), 0, TABLE_NONE) in found


def test_processes_share_the_tables_of_their_files(
    make_loader: Callable[..., Loader], loaded: Object, sleeper: subprocess.Popen[bytes], files: Files
) -> None:
    loader = make_loader()
    loader.read(sleeper.pid)
    loader.wait(PATIENCE)
    before = loader._store.tables_in_memory
    other = subprocess.Popen([shutil.which("cat") or "cat"], stdin=subprocess.PIPE)
    try:
        loader.read(other.pid)
        loader.wait(PATIENCE)
        assert loader._store.tables_in_memory == before
    finally:
        other.kill()
        other.communicate()


def test_a_file_without_rules_is_not_asked_for_again(
    make_loader: Callable[..., Loader], build: Build, tmp_path: Path, files: Files, loaded: Object
) -> None:
    bare = build(".text\nf: ret\n")
    loader = make_loader()
    elf = ElfFile(BytesSource(bare.read_bytes()))
    mapping = Mapping(0x7000_0000_0000, 0x7000_0000_1000, elf.segments[1].offset & -4096, str(bare), 1, 2)
    files.without.clear()
    loader._entries(os.getpid(), mapping)
    loader.wait(PATIENCE)
    assert sum(loader.counts.refused.values()) == 1
    ((_, _, table),) = loader._entries(os.getpid(), mapping)
    assert struct.unpack("<4I", loaded.find_map("unwind_tables").lookup(table.to_bytes(4, "little")) or b"")[3] == 1


def test_a_file_that_cannot_be_opened_is_tried_again(
    make_loader: Callable[..., Loader], sleeper: subprocess.Popen[bytes], files: Files
) -> None:
    path = read_maps(sleeper.pid)[0].path
    files.without.add(path)
    loader = make_loader()
    loader.read(sleeper.pid)
    files.without.clear()
    loader.read(sleeper.pid)
    assert files.asked.count(path) == 2


def test_small_memory_keeps_what_is_used(
    make_loader: Callable[..., Loader],
    loaded: Object,
    sleeper: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Store, "_add_shard", _only(1))
    loader = make_loader(1)
    monkeypatch.setattr(module, "_EVICT", 1)
    hold = loader._store._allocate(SHARD_WORDS - 6000)
    assert hold is not None
    loader.read(sleeper.pid)
    loader.wait(PATIENCE)
    tables = {table for _, _, table in entries(loader, loaded, sleeper.pid) if table >= TABLE_FIRST}
    there = {table for table in tables if loader._store.is_filled(table)}
    small = sorted(tables - there)
    assert there
    assert small, "libc's rows alone are more than there is room for"
    epoch = loader.next_epoch()
    loader.missed(small)
    loader.wait(PATIENCE)
    assert loader.counts.evicted + loader.counts.no_room > 0
    assert epoch == 2


def _only(count: int) -> Callable[[Store], bool]:
    original = Store._add_shard

    def add(self: Store) -> bool:
        return len(self._shards) < count and original(self)

    return add


def test_missed_tables_come_before_others_and_once_an_epoch(
    make_loader: Callable[..., Loader], sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = make_loader()
    gate, order = threading.Event(), []
    look_up = Compiling._look_up

    def slow(self: Compiling[module._File, object], file: module._File) -> None:
        gate.wait(PATIENCE)
        order.append(file)
        look_up(self, file)

    monkeypatch.setattr(Compiling, "_look_up", slow)
    loader.read(sleeper.pid)
    last = max(loader._owner)
    loader.missed([last])
    loader.missed([last])
    gate.set()
    loader.wait(PATIENCE)
    assert order.index(loader._owner[last]) <= 1, "one file may have been begun before"
    assert len(order) == len(set(order)) == len(loader._files)
    loader._store.empty(last)
    loader.missed([last])
    loader.wait(PATIENCE)
    assert len(order) == len(loader._files), "once in an epoch"
    loader.next_epoch()
    loader.missed([last])
    loader.wait(PATIENCE)
    assert len(order) == len(loader._files) + 1
    assert loader._store.is_filled(last)


def test_a_defect_that_a_file_brings_out_does_not_end_the_trace(
    make_loader: Callable[..., Loader], sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: TableCache, elf: ElfFile) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(TableCache, "table", broken)
    loader = make_loader()
    loader.read(sleeper.pid)
    loader.wait(PATIENCE)
    assert set(loader.counts.refused) == {"RuntimeError: a defect"}


def test_nobody_waits_for_the_compiler_at_the_end(
    make_loader: Callable[..., Loader], sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, gate = threading.Event(), threading.Event()

    def slow(self: TableCache, elf: ElfFile) -> None:
        begun.set()
        gate.wait(PATIENCE)

    monkeypatch.setattr(TableCache, "table", slow)
    loader = make_loader()
    loader.read(sleeper.pid)
    assert begun.wait(PATIENCE)
    loader._compiler.close(0.01)
    assert loader._compiler._thread.is_alive()
    gate.set()
    loader._compiler._thread.join(PATIENCE)
    assert not loader._compiler._thread.is_alive()


def test_a_process_that_is_gone(make_loader: Callable[..., Loader], loaded: Object) -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    loader = make_loader()
    assert not loader.read(child.pid)
    loader.unmap(child.pid)
    assert list(loaded.find_map("unwind_spaces").items()) == []


def test_what_is_mapped_later_takes_the_place_of_what_was_there(
    make_loader: Callable[..., Loader], loaded: Object, sleeper: subprocess.Popen[bytes]
) -> None:
    loader = make_loader()
    libc = next(m for m in read_maps(sleeper.pid) if "libc.so" in m.path)
    moved = libc._replace(start=0x10_0000, end=0x10_0000 + libc.end - libc.start)
    assert not loader.map(sleeper.pid, moved, time.monotonic_ns())
    before = time.monotonic_ns()
    loader.read(sleeper.pid)
    loader.wait(PATIENCE)
    there = libc.start + 0x1000
    row = look_up(loader, loaded, sleeper.pid, there)
    assert row > 0
    assert loader.map(sleeper.pid, moved, before - 1), "an event from before the mappings were read"
    loader.tell(sleeper.pid)
    assert entries(loader, loaded, sleeper.pid)[0][0] > moved.end
    loader.map(sleeper.pid, moved, time.monotonic_ns())
    loader.map(sleeper.pid, Mapping(libc.start, libc.start + 0x2000), time.monotonic_ns())
    loader.tell(sleeper.pid)
    assert look_up(loader, loaded, sleeper.pid, moved.start + 0x1000) == row
    assert look_up(loader, loaded, sleeper.pid, there) == -1
    assert look_up(loader, loaded, sleeper.pid, libc.start + 0x2000) >= 0
    loader.forget(sleeper.pid)
    assert not loader.map(sleeper.pid, moved, time.monotonic_ns())


def test_mappings_find_room_where_tables_leave(
    make_loader: Callable[..., Loader],
    loaded: Object,
    sleeper: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Store, "_add_shard", _only(1))
    loader = make_loader(1)
    loader.read(sleeper.pid)
    loader.wait(PATIENCE)
    there = loader._store.tables_in_memory
    assert there
    while loader._store._allocate(1):
        pass
    loader.next_epoch()
    before = entries(loader, loaded, sleeper.pid)
    mapping = Mapping(0x10_0000, 0x10_2000)
    loader.map(sleeper.pid, mapping, time.monotonic_ns())
    loader.tell(sleeper.pid)
    assert len(entries(loader, loaded, sleeper.pid)) > len(before)
    assert loader.counts.evicted > 0
    assert loader.counts.no_room == 0


def test_mappings_that_are_no_longer_true_do_not_stay(
    make_loader: Callable[..., Loader],
    loaded: Object,
    sleeper: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loader = make_loader()
    loader.read(sleeper.pid)
    loader.wait(PATIENCE)
    monkeypatch.setattr(Store, "_allocate", lambda *_: None)
    loader.tell(sleeper.pid)
    assert list(loaded.find_map("unwind_spaces").items()) == []
    assert loader.counts.no_room == 1


def test_a_mapping_beyond_all_measure_takes_few_tables(make_loader: Callable[..., Loader]) -> None:
    """Sparse files may have any size, and their segments claim any."""
    loader = make_loader()
    libc = next(m for m in read_maps(os.getpid()) if "libc.so" in m.path)
    elf = ElfFile(BytesSource(Path(libc.path).read_bytes()))
    code = next(segment for segment in elf.segments if segment.type == 1 and segment.offset == libc.offset)
    start = 0x1000_0000_0000
    found = loader._entries(os.getpid(), libc._replace(start=start, end=start + (1 << 46)))
    assert len(found) == module._MAX_CHUNKS + 1
    assert found == sorted(found)
    assert found[-1] == (start - code.vaddr + (1 << 32), 0, TABLE_NONE)
    assert loader.counts.no_room == 0


def test_a_table_that_was_missed_counts_as_used(
    make_loader: Callable[..., Loader], loaded: Object, sleeper: subprocess.Popen[bytes]
) -> None:
    loader = make_loader()
    loader.read(sleeper.pid)
    loader.wait(PATIENCE)
    number = max(number for number in loader._owner if loader._store.is_filled(number))
    loader._store.empty(number)
    epoch = loader.next_epoch()
    loader.missed([number])
    loader.wait(PATIENCE)
    assert loader._store.is_filled(number)
    assert number not in loader._store.oldest(1 << 16, epoch)
    assert number in loader._store.oldest(1 << 16, epoch + 1)


def test_too_little_memory_for_a_file_is_a_reason(
    make_loader: Callable[..., Loader], sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def greedy(self: TableCache, elf: ElfFile) -> None:
        raise MemoryError

    monkeypatch.setattr(TableCache, "table", greedy)
    loader = make_loader()
    loader.read(sleeper.pid)
    loader.wait(PATIENCE)
    assert loader.counts.refused.keys() == {"not enough memory"}


def test_a_process_without_mappings_is_not_told(make_loader: Callable[..., Loader], loaded: Object) -> None:
    """The main thread has ended, but others go on with what is known."""
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    loader = make_loader()
    assert not loader.read(child.pid)
    assert list(loaded.find_map("unwind_spaces").items()) == []
    child.wait()
