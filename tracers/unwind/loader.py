"""Decides which tables the probes have: loaded as walks need them, compiled in the background, within a memory budget.

A process's mappings are known with the tables of their code from the start. While there is room, all tables of its
files are loaded; after that, a table is loaded when a walk has missed it, and the least recently used are evicted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..images.elf import ElfFile, FileSource
from ..images.maps import AddressSpace, Mapping, read_maps
from .cache import TableCache
from .chunks import CHUNK_SHIFT, TABLE_NONE, TABLE_UNMAPPED, Chunk, cut
from .compiling import Compiling, Request, State
from .counts import Counts
from .rows import UnwindTable
from .store import Store

Finder = Callable[[int, Mapping], "ElfFile | None"]
"""Finds the file behind a mapping of a process."""

VDSO = "[vdso]"
_PT_LOAD, _PF_X = 1, 1
_EVICT = 64
"""Tables evicted at once."""
_MOST_FILES = 1 << 12
"""Files of a process that are asked for in one go: programs map some hundreds."""
_MAX_CHUNKS = 1 << 32 - CHUNK_SHIFT
"""Maximum for one mapping: a table describes 4 GB of code at most, but a file may have any size."""


@dataclass(eq=False)
class _File(Request):
    tables: dict[int, int] = field(default_factory=dict)
    """Chunk to table number."""
    problem: str = ""
    """Reason why there are no tables; "" if there is none."""
    loaded: bool = False
    missed: set[int] = field(default_factory=set)
    """Tables that were missed and need room."""
    late: bool = False
    """Whether its table was loaded while the trace was running."""


@dataclass(slots=True)
class _Space:
    mappings: AddressSpace
    read_ns: int
    """Time when the mappings were read, CLOCK_MONOTONIC ns."""
    entries: dict[Mapping, list[tuple[int, int, int]]] = field(default_factory=dict)
    """Entries that were written for the probes, for the mappings that have tables."""


class Loader:
    """Methods must be called from one thread; only the compilation runs in another."""

    def __init__(self, store: Store, find: Finder, cache: TableCache | None = None) -> None:
        self.counts = Counts()
        self._store = store
        self._find = find
        self._compiler: Compiling[_File, list[Chunk]] = Compiling(cache or TableCache(), _chunks)
        self._files: dict[tuple[int, int] | str, _File] = {}
        self._same: dict[tuple[int, int], _File] = {}
        """Files by device and inode of the open file: a file may be seen first by these, then by its build-id."""
        self._began = False
        self._owner: dict[int, _File] = {}
        """Table number to file."""
        self._spaces: dict[int, _Space] = {}
        self._epoch = 1
        self.is_over: Callable[[], bool] = lambda: False
        """Whether the trace is to end: then nothing more is asked for."""
        self._left_out: dict[int, int] = {}
        """Number of files that were not asked for, by process."""
        self._tried: dict[int, int] = {}
        """Missed table to the epoch in which it was last tried."""
        self._full = False
        """Whether only missed tables are loaded from now on, and others are evicted for them."""

    @property
    def ready(self) -> int:
        """A descriptor that is readable when `poll` has something to do."""
        return self._compiler.ready

    def read(self, pid: int) -> bool:
        """Reads the mappings of a process and writes them for the probes; tables follow.

        False when it is gone or has no mappings: they cannot be read once the main thread has exited.
        """
        begin = time.monotonic_ns()
        try:
            mappings = read_maps(pid)
        except OSError:
            return False
        if not mappings:
            return False
        self._spaces[pid] = _Space(AddressSpace(mappings), begin)
        self.tell(pid)
        return True

    def map(self, pid: int, mapping: Mapping, time_ns: int) -> bool:
        """Records that a process has mapped code; call `tell` later. False when its other mappings are not known."""
        space = self._spaces.get(pid)
        if space is None:
            return False
        if time_ns >= space.read_ns:  # else it was read with the others, or is already gone
            space.mappings.map(mapping)
        return True

    def tell(self, pid: int) -> None:
        """Writes for the probes where the code of a process is mapped."""
        import numpy as np

        space = self._spaces[pid]
        entries: list[tuple[int, int, int]] = []
        known, space.entries = space.entries, {}
        end = 0
        begin, left_out = len(self._files), 0
        for mapping in space.mappings:
            if entries and mapping.start > end:
                entries.append((end, 0, TABLE_UNMAPPED))
            own = known.get(mapping)
            if own is None and self._is_new(mapping) and (self.is_over() or len(self._files) - begin >= _MOST_FILES):
                left_out += 1
                own = [(mapping.start, 0, TABLE_NONE)]
            own = own or self._entries(pid, mapping)
            if own[0][2] != TABLE_NONE:
                space.entries[mapping] = own
            entries += own
            end = mapping.end
        if left_out or pid in self._left_out:
            self._left_out[pid] = left_out
            self.counts.left_out = sum(self._left_out.values())
        if entries and end < 1 << 64:
            entries.append((end, 0, TABLE_UNMAPPED))
        table = np.array(entries, np.uint64).reshape(-1, 3)
        while not self._store.set_space(pid, table):
            self._full = True
            if not self._make_room():
                self.counts.no_room += 1
                self._store.drop_space(pid)  # outdated mappings would lead walks astray
                return

    def expect(self, pid: int, mapping: Mapping, processes: int = 1) -> None:
        """Prepares the table of a file that ``processes`` map, or soon will, before the probes know these processes."""
        self._file(pid, mapping, processes)
        self._entries(pid, mapping)

    def expect_file(self, elf: ElfFile, path: str) -> None:
        """Prepares the tables of a file that some process will map."""
        file = self._known(elf, path, 1)
        for chunk in _code_chunks(elf):
            self._table(file, chunk)

    def forget(self, pid: int) -> None:
        """The process has executed another program."""
        self._spaces.pop(pid, None)

    def unmap(self, pid: int) -> None:
        """The process has exited."""
        self._spaces.pop(pid, None)
        self._store.drop_space(pid)

    def missed(self, tables: Iterable[int]) -> None:
        """Walks reached code whose tables are not in memory."""
        for number in tables:
            file = self._owner.get(number)
            if file is None or self._tried.get(number) == self._epoch or self._store.is_filled(number):
                continue
            self._tried[number] = self._epoch
            file.missed.add(number)
            self._compiler.put(file, urgent=True)

    def poll(self) -> bool:
        """Loads the tables that are ready; returns whether there were any."""
        self._compiler.heard()
        changed = False
        while (found := self._compiler.take()) is not None:
            changed |= self._put_in(*found)
        self.counts.bytes = self._store.bytes
        self.counts.uncached = self._compiler.uncached
        self.counts.problem = self._store.problem
        return changed

    def wait(self, seconds: float) -> None:
        """Waits until all requested tables are loaded, for at most ``seconds``."""
        end = time.monotonic() + seconds
        while not self._compiler.idle and (rest := end - time.monotonic()) > 0:
            self._compiler.wait(rest)
            self.poll()

    @property
    def idle(self) -> bool:
        """Whether all requested tables are loaded."""
        return self._compiler.idle

    @property
    def compiles_only(self) -> bool:
        """Whether all cached tables are loaded."""
        return self._compiler.compiles_only

    @property
    def state(self) -> State:
        """Numbers of files that were requested, and that are done."""
        return self._compiler.state

    @property
    def pids(self) -> set[int]:
        """Processes started for compiling."""
        return self._compiler.pids

    def begin(self) -> None:
        """Marks the start of the trace: tables loaded from now on are late."""
        self._began = True

    def next_epoch(self) -> int:
        """Starts a new epoch: distinguishes tables used from now on from those used before."""
        self._epoch += 1
        return self._epoch

    def close(self) -> None:
        """Stops the thread after its current file."""
        self._count_late()
        self._compiler.close()

    def _count_late(self) -> None:
        waiting = [file for file in self._same.values() if file.waits and file.was_compiled]
        self.counts.compiled = sum(file.was_compiled for file in self._same.values())
        late = [file for file in self._same.values() if file.late]
        compiled = [*(file for file in late if file.was_compiled), *waiting]
        self.counts.late = frozenset(file.path for file in compiled or late)
        self.counts.only_loaded = not compiled
        self.counts.unfinished = len(waiting)

    def _entries(self, pid: int, mapping: Mapping) -> list[tuple[int, int, int]]:
        """(start, offset from an address to its place in the chunk, table) of each chunk."""
        file = self._file(pid, mapping)
        vaddr = file.elf.mapped_at(mapping.offset) if file is not None else None
        if file is None or vaddr is None:
            return [(mapping.start, 0, TABLE_NONE)]
        entries: list[tuple[int, int, int]] = []
        last = vaddr + mapping.end - mapping.start - 1
        first = vaddr >> CHUNK_SHIFT
        for chunk in range(first, (last >> CHUNK_SHIFT) + 1):
            if chunk - first == _MAX_CHUNKS:
                entries.append((mapping.start - vaddr + (chunk << CHUNK_SHIFT), 0, TABLE_NONE))
                break
            origin = (mapping.start - vaddr + (chunk << CHUNK_SHIFT)) & (1 << 64) - 1
            entries.append((origin if entries else mapping.start, origin, self._table(file, chunk)))
        return entries

    def _table(self, file: _File, chunk: int) -> int:
        if chunk not in file.tables:
            number = self._store.new_table()
            if not number:
                self.counts.no_room += 1
                return TABLE_NONE
            file.tables[chunk] = number
            self._owner[number] = file
            if file.problem:
                self._store.mark_empty(number)
        return file.tables[chunk]

    def _is_new(self, mapping: Mapping) -> bool:
        """Whether it has to be asked what the mapping's table is."""
        return (mapping.is_file or mapping.path == VDSO) and _key(mapping) not in self._files

    def _file(self, pid: int, mapping: Mapping, processes: int = 1) -> _File | None:
        if not mapping.is_file and mapping.path != VDSO:
            return None
        key = _key(mapping)
        if key not in self._files:
            elf = self._find(pid, mapping)
            if elf is None:
                return None
            self._files[key] = self._known(elf, mapping.file_path, processes)
        return self._files[key]

    def _known(self, elf: ElfFile, path: str, processes: int) -> _File:
        """The file as already requested under another name, or as newly requested."""
        identity = _identity(elf)
        file = self._same.get(identity)
        if file is None:
            file = self._same[identity] = _File(elf, path, processes)
            if not self._full:
                self._compiler.put(file, urgent=False)
        file.path = path
        return file

    def _put_in(self, file: _File, found: list[Chunk] | str) -> bool:
        missed, file.missed = file.missed, set()
        file.late |= self._began and not file.loaded
        if isinstance(found, str):
            file.problem = found
            self.counts.refused[found] = self.counts.refused.get(found, 0) + 1
            for number in file.tables.values():
                self._store.mark_empty(number)
            return False
        self.counts.files += not file.loaded
        file.loaded = True
        changed = False
        empty = dict(file.tables)
        for chunk in found:
            number = empty.pop(chunk.number, 0)
            if number and not self._store.is_filled(number) and (number in missed or not self._full):
                changed |= self._fill(number, chunk, make_room=number in missed)
        for number in empty.values():
            self._store.mark_empty(number)
        return changed

    def _fill(self, number: int, chunk: Chunk, *, make_room: bool) -> bool:
        # A table that a walk has missed is in use; it must not be evicted for the next one.
        while not self._store.fill(number, chunk, self._epoch if make_room else 0):
            self._full = True
            if not make_room or not self._make_room():
                self.counts.no_room += make_room
                return False
        return True

    def _make_room(self) -> bool:
        """Evicts the least recently used tables; returns whether there were any."""
        old = self._store.oldest(_EVICT, self._epoch)
        for table in old:
            self._store.empty(table)
        self.counts.evicted += len(old)
        return bool(old)


def _key(mapping: Mapping) -> tuple[int, int] | str:
    return mapping.key if mapping.is_file else mapping.path


def _chunks(table: UnwindTable) -> list[Chunk]:
    return list(cut(table))


def _code_chunks(elf: ElfFile) -> list[int]:
    """Chunks of its executable segments; a file may claim any size."""
    chunks: set[int] = set()
    for segment in elf.segments:
        if segment.type == _PT_LOAD and segment.flags & _PF_X and segment.memsz:
            first = segment.vaddr >> CHUNK_SHIFT
            last = min(segment.vaddr + segment.memsz - 1 >> CHUNK_SHIFT, first + _MAX_CHUNKS - 1)
            chunks.update(range(first, last + 1))
            if len(chunks) >= _MAX_CHUNKS:
                break
    return sorted(chunks)[:_MAX_CHUNKS]


def _identity(elf: ElfFile) -> tuple[int, int]:
    if isinstance(elf.source, FileSource):
        status = os.fstat(elf.source.fd)
        return status.st_dev, status.st_ino
    return -1, id(elf)
