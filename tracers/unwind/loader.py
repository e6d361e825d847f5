"""Which tables the probes have: loaded as walks need them, in the background, within a memory budget.

A process's mappings name the tables of their code from the start; a table's rows come when a walk has missed them, and
then those of the rest of the process, as long as there is room. When there is none, the longest unused leave.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..symbols.elf import ElfError, ElfFile
from ..symbols.maps import Mapping, read_maps
from .cache import TableCache
from .compiler import UnwindError
from .layout import CHUNK_SHIFT, TABLE_NONE, TABLE_UNMAPPED, Chunk, chunks
from .store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Finder = Callable[[Mapping], "ElfFile | None"]
"""The file behind a mapping."""

VDSO = "[vdso]"
_PT_LOAD, _PAGE = 1, 4096
_EVICT = 64
"""Tables that leave at once."""


@dataclass(slots=True)
class _File:
    elf: ElfFile
    tables: dict[int, int] = field(default_factory=dict)
    """By chunk, the table's number."""
    problem: str = ""
    """Why there are none."""
    loaded: bool = False


@dataclass(slots=True)
class Counts:
    """What the loader did."""

    files: int = 0
    """Files whose tables were put in."""
    refused: dict[str, int] = field(default_factory=dict)
    """Files without a table, by reason."""
    evicted: int = 0
    """Tables that left for want of room."""
    no_room: int = 0
    """Tables and mappings that found no room."""


class Loader:
    """Loads in a thread of its own from `start` on; `request` and `tick` are for the thread that traces."""

    def __init__(self, store: Store, find: Finder, cache: TableCache | None = None) -> None:
        self.counts = Counts()
        self._store = store
        self._find = find
        self._cache = cache or TableCache()
        self._files: dict[tuple[int, int] | str, _File | None] = {}
        self._owner: dict[int, _File] = {}
        """By table."""
        self._epoch = 1
        self._urgent: deque[int] = deque()
        """Tables that walks missed."""
        self._pids: deque[int] = deque()
        self._eager: deque[_File] = deque()
        self._gone: deque[int] = deque()
        self._full = False
        """From now on only what is missed comes in, and something else leaves."""
        self._tried: dict[int, int] = {}
        """When a missed table was tried last: the epoch."""
        self._changed = False
        self._stopping = False
        self._failure: BaseException | None = None
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Goes on in the background."""
        self._thread = threading.Thread(target=self._run, name="unwind tables", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; what it was doing is completed."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def request(self, pids: Iterable[int] = (), tables: Iterable[int] = (), gone: Iterable[int] = ()) -> None:
        """These processes have new mappings; these tables were missed; these processes are gone."""
        with self._wake:
            self._pids.extend(pid for pid in pids if pid not in self._pids)
            self._urgent.extend(table for table in tables if table not in self._urgent)
            self._gone.extend(gone)
            self._wake.notify()

    def changed(self) -> bool:
        """Whether more stacks can be complete than at the last call. Raises what ended the thread."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        changed, self._changed = self._changed, False
        return changed

    def next_epoch(self) -> int:
        """The number by which tables used from now on are told from those used before."""
        self._epoch += 1
        return self._epoch

    def work(self) -> bool:
        """Does the most urgent thing; False when there is nothing to do."""
        if self._gone:
            self._store.drop_space(self._gone.popleft())
        elif self._pids:
            self._map(self._pids.popleft())
        elif self._urgent:
            self._load_missed(self._urgent.popleft())
        elif self._eager:
            file = self._eager.popleft()
            if not (file.loaded or self._full):
                self._load(file)
        else:
            self._store.settle()
            return False
        return True

    def _run(self) -> None:
        try:
            while not self._stopping:
                if not self.work():
                    with self._wake:
                        self._wake.wait(0.5)
        except BaseException as error:
            self._failure = error

    def _map(self, pid: int) -> None:
        """Tells the probes where the code of a process lies."""
        import numpy as np

        try:
            mappings = read_maps(pid)
        except OSError:
            return
        entries: list[tuple[int, int, int]] = []
        end = 0
        for mapping in mappings:
            if entries and mapping.start > end:
                entries.append((end, 0, TABLE_UNMAPPED))
            entries += self._entries(mapping)
            end = mapping.end
        if entries and end < 1 << 64:
            entries.append((end, 0, TABLE_UNMAPPED))
        table: NDArray[np.uint64] = np.array(entries, np.uint64).reshape(-1, 3)
        if self._store.set_space(pid, table):
            self._changed = True
        else:
            self.counts.no_room += 1

    def _entries(self, mapping: Mapping) -> list[tuple[int, int, int]]:
        file = self._file(mapping)
        vaddr = _vaddr(file.elf, mapping.offset) if file is not None else None
        if file is None or vaddr is None:
            return [(mapping.start, 0, TABLE_NONE)]
        entries = []
        last = vaddr + mapping.end - mapping.start - 1
        for chunk in range(vaddr >> CHUNK_SHIFT, (last >> CHUNK_SHIFT) + 1):
            origin = (mapping.start - vaddr + (chunk << CHUNK_SHIFT)) & (1 << 64) - 1
            start = mapping.start if not entries else origin
            number = self._table(file, chunk)
            entries.append((start, origin, number))
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

    def _file(self, mapping: Mapping) -> _File | None:
        if not mapping.is_file and mapping.path != VDSO:
            return None
        key = mapping.key if mapping.is_file else mapping.path
        if key not in self._files:
            elf = self._find(mapping)
            file = self._files[key] = _File(elf) if elf is not None else None
            if file is not None:
                self._eager.append(file)
        return self._files[key]

    def _load_missed(self, number: int) -> None:
        file = self._owner.get(number)
        if file is not None and self._tried.get(number) != self._epoch and not self._store.is_filled(number):
            self._tried[number] = self._epoch
            self._load(file, number)

    def _load(self, file: _File, missed: int = 0) -> None:
        """Puts in the table that was missed, for which room is made, and all others of the file for which there is."""
        try:
            table = self._cache.table(file.elf)
        except (UnwindError, ElfError) as error:
            file.problem = str(error)
            self.counts.refused[file.problem] = self.counts.refused.get(file.problem, 0) + 1
            for number in file.tables.values():
                self._store.mark_empty(number)
            return
        self.counts.files += not file.loaded
        file.loaded = True
        empty = dict(file.tables)
        for chunk in chunks(table):
            number = empty.pop(chunk.number, 0)
            if number and not self._store.is_filled(number) and (number == missed or not self._full):
                self._fill(number, chunk, make_room=number == missed)
        for number in empty.values():
            self._store.mark_empty(number)
        self._changed = True

    def _fill(self, number: int, chunk: Chunk, *, make_room: bool) -> None:
        while not self._store.fill(number, chunk):
            self._full = True
            old = self._store.oldest(_EVICT, self._epoch) if make_room else []
            if not old:
                self.counts.no_room += make_room
                return
            for table in old:
                self._store.empty(table)
            self.counts.evicted += len(old)
            self._store.settle()


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
