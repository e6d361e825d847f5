"""Which tables the probes have: loaded as walks need them, compiled in the background, within a memory budget.

A process's mappings name the tables of their code from the start. All tables of its files are put in as long as there
is room; when there is none, a table comes when a walk has missed it, and the longest unused leave.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..symbols.elf import ElfError, ElfFile
from ..symbols.maps import AddressSpace, Mapping, read_maps
from .cache import TableCache
from .chunks import CHUNK_SHIFT, TABLE_NONE, TABLE_UNMAPPED, Chunk, cut
from .compiler import UnwindError
from .store import Store

Finder = Callable[[int, Mapping], "ElfFile | None"]
"""The file behind a mapping of a process."""

VDSO = "[vdso]"
_PT_LOAD, _PAGE = 1, 4096
_PATIENCE = 0.5
"""Seconds that the end of a trace waits for the compiler."""
_EVICT = 64
"""Tables that leave at once."""
_MAX_CHUNKS = 1 << 32 - CHUNK_SHIFT
"""Of one mapping: a table describes 4 GB of code at most, but a file may have any size."""


@dataclass(slots=True, eq=False)
class _File:
    elf: ElfFile
    tables: dict[int, int] = field(default_factory=dict)
    """By chunk, the table's number."""
    problem: str = ""
    """Why there are none."""
    loaded: bool = False
    missed: set[int] = field(default_factory=set)
    """Tables for which room is to be made."""
    waits: bool = False
    """It is with the compiler."""


@dataclass(slots=True)
class _Space:
    mappings: AddressSpace
    read_ns: int
    """When they were read, CLOCK_MONOTONIC."""
    entries: dict[Mapping, list[tuple[int, int, int]]] = field(default_factory=dict)
    """What the probes were told of those that have tables."""


@dataclass(slots=True)
class Counts:
    """What the loader did."""

    bytes: int = 0
    """Kernel memory of the tables."""
    problem: str = ""
    """Why they did not get all of their budget."""
    files: int = 0
    """Files whose tables were put in."""
    refused: dict[str, int] = field(default_factory=dict)
    """Files without a table, by reason."""
    evicted: int = 0
    """Tables that left for want of room."""
    no_room: int = 0
    """Tables and mappings that found no room."""


class _Compiler:
    """A thread that compiles, or finds in the cache, one file after the other.

    ``ready`` becomes readable with a result.
    """

    def __init__(self, cache: TableCache) -> None:
        self.ready = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._cache = cache
        self._todo: deque[_File] = deque()
        self._done: deque[tuple[_File, list[Chunk] | str]] = deque()
        self._wake = threading.Condition()
        self._stopping = self._busy = False
        self._thread = threading.Thread(target=self._run, name="unwind tables", daemon=True)
        self._thread.start()

    def put(self, file: _File, *, urgent: bool) -> None:
        """``urgent``: before all others."""
        with self._wake:
            if file.waits and not (urgent and file in self._todo):
                return
            if file.waits:
                self._todo.remove(file)
            file.waits = True
            (self._todo.appendleft if urgent else self._todo.append)(file)
            self._wake.notify()

    def take(self) -> tuple[_File, list[Chunk] | str] | None:
        """A file with its chunks, or with the reason why there are none."""
        if not self._done:
            return None
        file, result = self._done.popleft()
        file.waits = False
        return file, result

    def wait(self, seconds: float) -> None:
        """Until a result is there."""
        poll = select.poll()
        poll.register(self.ready, select.POLLIN)
        poll.poll(max(seconds, 0) * 1000)

    @property
    def idle(self) -> bool:
        """Nothing is to be done, and nothing to be taken."""
        with self._wake:
            return not (self._todo or self._done or self._busy)

    def heard(self) -> None:
        """Makes ``ready`` wait for the next result."""
        try:
            os.eventfd_read(self.ready)
        except BlockingIOError:
            return

    def close(self) -> None:
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join(_PATIENCE)
        if not self._thread.is_alive():  # else it ends with the command: nobody waits for a large file's table
            self._cache.close()
            os.close(self.ready)

    def _run(self) -> None:
        while True:
            with self._wake:
                while not (self._todo or self._stopping):
                    self._wake.wait()
                if self._stopping:
                    return
                file = self._todo.popleft()
                self._busy = True
            result = self._compile(file)
            with self._wake:
                self._done.append((file, result))
                self._busy = False
            os.eventfd_write(self.ready, 1)

    def _compile(self, file: _File) -> list[Chunk] | str:
        try:
            return list(cut(self._cache.table(file.elf)))
        except (UnwindError, ElfError) as error:
            return str(error)
        except MemoryError:
            return "not enough memory"
        except Exception as error:  # a defect that a file brings out must not end the trace
            return f"{type(error).__name__}: {error}"


class Loader:
    """Its methods are for one thread; only compiling goes on in another."""

    def __init__(self, store: Store, find: Finder, cache: TableCache | None = None) -> None:
        self.counts = Counts()
        self._store = store
        self._find = find
        self._compiler = _Compiler(cache or TableCache())
        self._files: dict[tuple[int, int] | str, _File] = {}
        self._owner: dict[int, _File] = {}
        """By table."""
        self._spaces: dict[int, _Space] = {}
        self._epoch = 1
        self._tried: dict[int, int] = {}
        """When a missed table was tried last: the epoch."""
        self._full = False
        """From now on only what is missed comes in, and something else leaves."""

    @property
    def ready(self) -> int:
        """A descriptor that is readable when `poll` has something to do."""
        return self._compiler.ready

    def read(self, pid: int) -> bool:
        """Reads the mappings of a process and tells the probes; tables are to come.

        False when it is gone, or has none: of threads that outlive their process's main thread they cannot be read.
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
        """A process has mapped code; `tell` the probes later. False when its other mappings are not known."""
        space = self._spaces.get(pid)
        if space is None:
            return False
        if time_ns >= space.read_ns:  # else it was read with the others, or is gone again
            space.mappings.map(mapping)
        return True

    def tell(self, pid: int) -> None:
        """Tells the probes where the code of a process lies."""
        import numpy as np

        space = self._spaces[pid]
        entries: list[tuple[int, int, int]] = []
        known, space.entries = space.entries, {}
        end = 0
        for mapping in space.mappings:
            if entries and mapping.start > end:
                entries.append((end, 0, TABLE_UNMAPPED))
            own = known.get(mapping) or self._entries(pid, mapping)
            if own[0][2] != TABLE_NONE:
                space.entries[mapping] = own
            entries += own
            end = mapping.end
        if entries and end < 1 << 64:
            entries.append((end, 0, TABLE_UNMAPPED))
        table = np.array(entries, np.uint64).reshape(-1, 3)
        while not self._store.set_space(pid, table):
            self._full = True
            if not self._make_room():
                self.counts.no_room += 1
                self._store.drop_space(pid)  # what is no longer true would lead walks astray
                return

    def expect(self, pid: int, mapping: Mapping) -> None:
        """Others will map this file, too."""
        self._file(pid, mapping)

    def forget(self, pid: int) -> None:
        """It began another program."""
        self._spaces.pop(pid, None)

    def unmap(self, pid: int) -> None:
        """The process is gone."""
        self._spaces.pop(pid, None)
        self._store.drop_space(pid)

    def missed(self, tables: Iterable[int]) -> None:
        """Walks came to code whose tables are not in memory."""
        for number in tables:
            file = self._owner.get(number)
            if file is None or self._tried.get(number) == self._epoch or self._store.is_filled(number):
                continue
            self._tried[number] = self._epoch
            file.missed.add(number)
            self._compiler.put(file, urgent=True)

    def poll(self) -> bool:
        """Puts in what is ready; whether anything was."""
        self._compiler.heard()
        changed = False
        while (found := self._compiler.take()) is not None:
            changed |= self._put_in(*found)
        self.counts.bytes = self._store.bytes
        self.counts.problem = self._store.problem
        return changed

    def wait(self, seconds: float) -> None:
        """Until all that was asked for is there, for ``seconds`` at most."""
        end = time.monotonic() + seconds
        while not self._compiler.idle and (rest := end - time.monotonic()) > 0:
            self._compiler.wait(rest)
            self.poll()

    def next_epoch(self) -> int:
        """The number by which tables used from now on are told from those used before."""
        self._epoch += 1
        return self._epoch

    def close(self) -> None:
        """Ends the thread when it has done what it is at."""
        self._compiler.close()

    def _entries(self, pid: int, mapping: Mapping) -> list[tuple[int, int, int]]:
        """(start, what to subtract from an address for its place in the chunk, table) of each chunk."""
        file = self._file(pid, mapping)
        vaddr = _vaddr(file.elf, mapping.offset) if file is not None else None
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

    def _file(self, pid: int, mapping: Mapping) -> _File | None:
        if not mapping.is_file and mapping.path != VDSO:
            return None
        key = mapping.key if mapping.is_file else mapping.path
        if key not in self._files:
            elf = self._find(pid, mapping)
            if elf is None:
                return None
            file = self._files[key] = _File(elf)
            if not self._full:
                self._compiler.put(file, urgent=False)
        return self._files[key]

    def _put_in(self, file: _File, found: list[Chunk] | str) -> bool:
        missed, file.missed = file.missed, set()
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
        # One that a walk waits for is in use; it must not leave for the next one that comes.
        while not self._store.fill(number, chunk, self._epoch if make_room else 0):
            self._full = True
            if not make_room or not self._make_room():
                self.counts.no_room += make_room
                return False
        return True

    def _make_room(self) -> bool:
        """Lets the longest unused tables leave; whether there were any."""
        old = self._store.oldest(_EVICT, self._epoch)
        for table in old:
            self._store.empty(table)
        self.counts.evicted += len(old)
        return bool(old)


def _vaddr(elf: ElfFile, offset: int) -> int | None:
    """The virtual address of the code at a file offset."""
    for segment in elf.segments:
        if segment.type == _PT_LOAD and segment.offset <= offset < segment.offset + segment.filesz:
            return segment.vaddr + offset - segment.offset
    # A mapping begins at the page of its segment's first byte.
    for segment in elf.segments:
        if segment.type == _PT_LOAD and segment.offset & -_PAGE == offset:
            return segment.vaddr & -_PAGE
    return None
