"""Function symbols of one file: maps an address to the one name that covers it, or to none.

Rules that keep every name correct:

- A sized symbol covers [value, value + size), cut at the end of its section. Of nested ones the
  innermost (highest start) wins.
- A symbol without size (hand-written assembly) is trusted only if it comes from a .symtab whose
  local symbols were not stripped. It covers addresses up to the next symbol of any type, the next
  function that the unwinder knows, the end of the function that contains it, or the end of its section,
  whichever comes first; it is ignored if a sized symbol covers its start.
- Of several names for one function: exported before local, fewer leading underscores first, strong
  before weak, then the shortest, then by alphabet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, NamedTuple

from .elf import MAX_NAME, MAX_SYMBOLS, SHF_ALLOC, SHF_EXECINSTR, SHT_SYMTAB, ElfFile, TooMuch, read_string

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_STT_NOTYPE, _STT_FUNC, _STT_IFUNC = 0, 2, 10
_STB_LOCAL, _STB_WEAK = 0, 2
_MAX_ALIASES = 64
_MAX_STEPS = 1024
_MAX_STRINGS = 256 << 20
"""Bytes of a table of names that are searched."""
_MAX_READ = 64 << 20
"""Bytes of names that are read of one file for addresses: many symbols can have the same long name."""
_MAX_SAME = 1 << 12
"""Places in a table of names at which one is found: a short one ends many others."""

_VERSION = re.compile(r"(?<=.)@{1,2}[A-Za-z_][\w.]*$")
_MANGLED = re.compile(r"_+(?:Z|R[A-Z])")


class Bounds(NamedTuple):
    """Functions known from unwind rules: first addresses and ends, sorted, without overlaps."""

    start: NDArray[np.uint64]
    end: NDArray[np.uint64]

    @classmethod
    def none(cls) -> Bounds:
        """Bounds without any function."""
        import numpy as np

        return cls(np.zeros(0, np.uint64), np.zeros(0, np.uint64))

    def holding(self, addresses: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Index of the function that contains each address, -1 in a gap."""
        import numpy as np

        found = np.searchsorted(self.start, addresses, side="right") - 1
        if not len(self.end):
            return found
        # Index -1 wraps to the last function: the sign check excludes it.
        return np.where((found >= 0) & (addresses < self.end[found]), found, -1)


class Symbol(NamedTuple):
    """A function's symbol: [start, end), and where the next one begins (0: there is none). ``end`` is ``start`` for one
    without size."""

    start: int
    end: int
    next: int


class _Part(NamedTuple):
    """The contribution of one symbol table. Arrays have equal length, except ``marks``."""

    elf: ElfFile
    strings: tuple[int, int]
    start: NDArray[np.uint64]
    end: NDArray[np.uint64]
    """Equal to start for a symbol without size."""
    limit: NDArray[np.uint64]
    """End of the section."""
    name: NDArray[np.uint32]
    rank: NDArray[np.uint8]
    marks: NDArray[np.uint64]
    """Begins of all symbols of the executable sections."""
    complete: bool
    """Local symbols are present: a function without a symbol is not mistaken for part of one without size."""


def better_name(name: str, *, local: bool, weak: bool) -> tuple[bool, int, bool, int, str]:
    """Sort key for the names of one function, the best first."""
    mangled = _MANGLED.match(name)
    underscores = 0 if mangled else len(name) - len(name.lstrip("_"))
    return local, underscores, weak, len(name), name


class SymbolTable:
    """The function symbols of ``files`` (a program, its debug file, its embedded table), merged."""

    def __init__(self, files: list[ElfFile], functions: Callable[[], Bounds], most: int = MAX_SYMBOLS) -> None:
        """``functions`` is called if there are symbols without size. `TooMuch` for more than ``most`` symbols."""
        self._parts: list[_Part] = []
        for elf in files:
            for table in elf.symbol_tables():
                self._parts.append(_read_part(elf, table, most - self.size))
        self._bytes = 0
        """Bytes of names that were read."""
        self.unread = 0
        """Names that were not read, because the others of the file are too long."""
        self._sized = _Ranges.empty()
        self._sizeless = _Ranges.empty()
        if self._parts:
            self._build(functions)

    def __len__(self) -> int:
        return len(self._sized.name) + len(self._sizeless.name)

    @property
    def size(self) -> int:
        """Symbols that are in memory."""
        return sum(len(part.marks) for part in self._parts)

    def find(self, addresses: NDArray[np.uint64]) -> list[str | None]:
        """The raw (mangled) name of the function that covers each virtual address, None where none does."""
        names: list[str | None] = [None] * len(addresses)
        for ranges in (self._sized, self._sizeless):
            self._find_in(ranges, addresses, names)
        return names

    def named(self, names: Collection[str]) -> dict[str, list[Symbol]]:
        """The symbols with each raw name, one per address; a name without any is left out."""
        import numpy as np

        found: dict[str, dict[int, Symbol]] = {}
        starts = np.unique(np.concatenate([np.zeros(0, np.uint64), *(part.start for part in self._parts)]))
        for part in self._parts:
            offset, size = part.strings
            strings = part.elf.source.read(offset, size) if size <= _MAX_STRINGS else b""
            for name in names:
                rows = np.flatnonzero(np.isin(part.name, _places_of(name, strings)))
                for start, end in zip(part.start[rows].tolist(), part.end[rows].tolist(), strict=True):
                    after = int(np.searchsorted(starts, start, side="right"))
                    limit = int(starts[after]) if after < len(starts) else 0
                    found.setdefault(name, {}).setdefault(start, Symbol(start, end, limit))
        return {name: list(symbols.values()) for name, symbols in found.items()}

    def _find_in(self, ranges: _Ranges, addresses: NDArray[np.uint64], names: list[str | None]) -> None:
        cache: dict[tuple[int, int], str | None] = {}
        for i, (group, address) in enumerate(zip(ranges.groups(addresses).tolist(), addresses.tolist(), strict=True)):
            if group < 0 or names[i] is not None:
                continue
            # If the ends in a group differ, another address may have another name.
            key = (group, 0 if ranges.uniform[group] else address)
            if key not in cache:
                cache[key] = self._best(ranges, ranges.aliases(group, address))
            names[i] = cache[key]

    def _best(self, ranges: _Ranges, aliases: tuple[int, ...]) -> str | None:
        best = None
        for i in aliases:
            part = self._parts[ranges.part[i]]
            offset, size = part.strings
            if self._bytes > _MAX_READ:
                self.unread += 1
                break
            raw = read_string(part.elf.source, offset, size, int(ranges.name[i]))
            self._bytes += MAX_NAME if raw is None else len(raw)
            if raw:
                name = _VERSION.sub("", raw.decode("utf-8", "backslashreplace"))
                rank = int(ranges.rank[i])
                key = better_name(name, local=rank > 1, weak=rank == 1)
                best = key if best is None else min(best, key)
        return best[-1] if best else None

    def _build(self, functions: Callable[[], Bounds]) -> None:
        import numpy as np

        parts = self._parts
        start = np.concatenate([p.start for p in parts])
        end = np.concatenate([p.end for p in parts])
        name = np.concatenate([p.name for p in parts])
        rank = np.concatenate([p.rank for p in parts])
        part = np.concatenate([np.full(len(p.start), i, np.uint8) for i, p in enumerate(parts)])
        sized = end > start
        self._sized = _Ranges(start[sized], end[sized], name[sized], rank[sized], part[sized])

        complete = np.concatenate([np.full(len(p.start), p.complete) for p in parts])
        loose = np.flatnonzero(~sized & complete)
        loose = loose[self._sized.groups(start[loose]) < 0]
        if not len(loose):
            return
        # The end of a function is a mark, too: nothing describes the code after it.
        marks = np.sort(np.concatenate([p.marks for p in parts] + list(functions())))
        after = np.searchsorted(marks, start[loose], side="right")
        limit = np.concatenate([p.limit for p in parts])[loose]
        bounded = after < len(marks)
        ends = np.where(bounded, np.minimum(marks[np.minimum(after, len(marks) - 1)], limit), limit)
        self._sizeless = _Ranges(start[loose], ends, name[loose], rank[loose], part[loose])


class _Ranges:
    """Ranges sorted by start; those with the same start form a group."""

    def __init__(
        self,
        start: NDArray[np.uint64],
        end: NDArray[np.uint64],
        name: NDArray[np.uint32],
        rank: NDArray[np.uint8],
        part: NDArray[np.uint8],
    ) -> None:
        import numpy as np

        order = np.lexsort((rank, start))
        start = start[order]
        self.end, self.name, self.rank, self.part = end[order], name[order], rank[order], part[order]
        first = np.flatnonzero(np.diff(start, prepend=start[:1] - np.uint64(1))) if len(start) else np.zeros(0, np.intp)
        self._starts = start[first]
        self._first = np.append(first, len(start))
        self._group_end = np.maximum.reduceat(self.end, first) if len(first) else self.end
        self.uniform = np.minimum.reduceat(self.end, first) == self._group_end if len(first) else self.end
        """Whether all ranges of each group end at the same address."""
        self._reach = np.maximum.accumulate(self._group_end)
        """Highest end of this group and all before it."""

    @classmethod
    def empty(cls) -> _Ranges:
        import numpy as np

        none = np.zeros(0, np.uint64)
        return cls(none, none, none.astype(np.uint32), none.astype(np.uint8), none.astype(np.uint8))

    def groups(self, addresses: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Group with the highest start that covers each address, -1 where none does."""
        import numpy as np

        group = np.searchsorted(self._starts, addresses, side="right") - 1
        covered = np.flatnonzero(group >= 0)
        covered = covered[self._reach[group[covered]] > addresses[covered]]
        found = np.full(len(addresses), -1, np.intp)
        found[covered] = group[covered]
        open_ = covered
        for _ in range(_MAX_STEPS):
            open_ = open_[self._group_end[found[open_]] <= addresses[open_]]
            if not len(open_):
                return found
            found[open_] -= 1
        # A pathological table: the outermost range that covers the address is correct, too.
        found[open_] = np.searchsorted(self._reach, addresses[open_], side="right")
        return found

    def aliases(self, group: int, address: int) -> tuple[int, ...]:
        """Rows of ``group`` that cover ``address``, at most 64 of the best rank."""
        first, last = int(self._first[group]), int(self._first[group + 1])
        rows = [i for i in range(first, min(last, first + 4 * _MAX_ALIASES)) if self.end[i] > address]
        return tuple(rows[:_MAX_ALIASES])


def _places_of(name: str, strings: bytes) -> list[int]:
    """Places of this name in a table of names, also as the end of another one."""
    wanted = name.encode("utf-8", "surrogateescape") + b"\0"
    places: list[int] = []
    at = strings.find(wanted) if name else -1
    while at >= 0 and len(places) < _MAX_SAME:
        places.append(at)
        at = strings.find(wanted, at + 1)
    return places


class _Columns(NamedTuple):
    """Columns of a `_Part` that have a value for each symbol, and ``marks``; of some of a table's symbols."""

    start: NDArray[np.uint64]
    end: NDArray[np.uint64]
    limit: NDArray[np.uint64]
    name: NDArray[np.uint32]
    rank: NDArray[np.uint8]
    marks: NDArray[np.uint64]
    has_local: bool


def _read_part(elf: ElfFile, table: np.void, most: int) -> _Part:
    """`TooMuch` if it has more than ``most`` symbols of code."""
    import numpy as np

    strings = elf.strings(table)
    ranges = _code_of(elf)
    pieces, number = list[_Columns](), 0
    for rows in elf.symbol_pieces(table):
        pieces.append(_columns(rows, *ranges))
        number += len(pieces[-1].marks)
        if number > most:
            raise TooMuch(f"over {most:,} symbols")
    start, end, limit, name, rank, marks = (np.concatenate(column) for column in list(zip(*pieces, strict=True))[:-1])
    complete = bool(table["type"] == SHT_SYMTAB and any(piece.has_local for piece in pieces))
    return _Part(elf, strings, start, end, limit, name, rank, marks, complete)


def _code_of(elf: ElfFile) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Begin and end of each section, both 0 for those without code."""
    import numpy as np

    sections = elf.sections
    wanted = np.uint64(SHF_ALLOC | SHF_EXECINSTR)
    is_code = (sections["flags"].astype(np.uint64) & wanted) == wanted
    low = np.where(is_code, sections["addr"], 0).astype(np.uint64)
    high = np.where(is_code, sections["addr"] + sections["size"], 0).astype(np.uint64)
    return low, high


def _columns(rows: NDArray[np.void], low: NDArray[np.uint64], high: NDArray[np.uint64]) -> _Columns:
    import numpy as np

    shndx = rows["shndx"]
    rows = rows[(shndx > 0) & (shndx < len(low))]
    kind = rows["info"] & 15
    rows = rows[(kind <= _STT_FUNC) | (kind == _STT_IFUNC)]
    value = rows["value"].astype(np.uint64)
    inside = (value >= low[rows["shndx"]]) & (value < high[rows["shndx"]])
    rows, value = rows[inside], value[inside]
    kind, binding = rows["info"] & 15, rows["info"] >> 4
    size = rows["size"].astype(np.uint64)
    has_local = bool(np.any(binding == _STB_LOCAL))

    named = (kind == _STT_FUNC) | (kind == _STT_IFUNC) | ((kind == _STT_NOTYPE) & (size > 0))
    chosen = rows[named]
    limit = high[chosen["shndx"]]
    start = value[named]
    rank = np.where(binding[named] == _STB_LOCAL, 2, np.where(binding[named] == _STB_WEAK, 1, 0)).astype(np.uint8)
    end = start + np.minimum(size[named], limit - start)
    return _Columns(start, end, limit, chosen["name"].astype(np.uint32), rank, value, has_local)


def has_symtab(elf: ElfFile) -> bool:
    """Whether the full symbol table is there (not stripped)."""
    return bool(((elf.sections["type"] == SHT_SYMTAB) & (elf.sections["size"] > 0)).any())
