"""The functions that a file defines, by name: where they begin in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from .elf import MAX_NAME, SHT_DYNSYM, ElfFile, TooMuch
from .go_table import has_go_note
from .symtab import better_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_STT_FUNC = 2
_PIECE = 1 << 22
"""Bytes of a table of names that are read at a time."""
_MAX_NAMES = 512 << 20
"""Bytes of all names of a table."""
_MAX_KEPT, _EACH = 320 << 20, 100
"""Memory of those that are kept, and of an empty one."""
_LOAD, _EXECUTABLE = 1, 1
_OF_GO = b".gopclntab", b".data.rel.ro.gopclntab", b".note.go.buildid", b".go.buildinfo"


class Function(NamedTuple):
    """``offset`` in the file; ``code``: its first bytes."""

    name: str
    offset: int
    code: bytes


def find_functions(elf: ElfFile, wanted: Callable[[str], bool], code: int, *, exported: bool = False) -> list[Function]:
    """The functions with a wanted name, one per address, sorted by address, with up to ``code`` bytes of their code.
    ``exported``: only those that other files can call, which are far fewer.

    ElfError for a damaged file.
    """
    names: dict[int, str] = {}
    for table in elf.symbol_tables((SHT_DYNSYM,)) if exported else elf.symbol_tables():
        _add_names(elf, table, wanted, names)
    found = []
    for vaddr, name in sorted(names.items()):
        segment = next(
            (s for s in elf.segments if s.type == _LOAD and s.flags & _EXECUTABLE and 0 <= vaddr - s.vaddr < s.filesz),
            None,
        )
        if segment:
            size = min(code, segment.vaddr + segment.filesz - vaddr)
            found.append(Function(name, vaddr - segment.vaddr + segment.offset, elf.code_at(vaddr, size)))
    return found


def is_of_go(elf: ElfFile) -> bool:
    """Whether Go's linker made the file. Its code moves stacks, and looks at the return addresses on them."""
    return any(elf.section_header(name) is not None for name in _OF_GO) or has_go_note(elf)


def function_names(elf: ElfFile) -> list[str]:
    """All of them, sorted."""
    found: set[str] = set()
    kept = 0

    def take(name: str) -> bool:
        nonlocal kept
        if name not in found:
            found.add(name)
            kept += len(name) + _EACH
            if kept > _MAX_KEPT:
                raise TooMuch(f"names of its functions take over {_MAX_KEPT >> 20} MB")
        return False

    find_functions(elf, take, 0)
    return sorted(found)


def _add_names(elf: ElfFile, table: np.void, wanted: Callable[[str], bool], names: dict[int, str]) -> None:
    offset, size = elf.strings(table)
    kept = 0
    for raw, vaddr in _texts(elf, offset, size, *_defined(elf, table)):
        name = raw.decode("utf-8", "backslashreplace")
        if wanted(name) and (vaddr not in names or _key(name) < _key(names[vaddr])):
            names[vaddr] = name
            kept += len(name) + _EACH
            if kept > _MAX_KEPT:
                raise TooMuch(f"names of its functions take over {_MAX_KEPT >> 20} MB")


def _texts(
    elf: ElfFile, offset: int, size: int, indices: NDArray[np.uint32], vaddrs: NDArray[np.uint64]
) -> Iterator[tuple[bytes, int]]:
    """Names in a table of them, and what belongs to each. ``indices`` are sorted. The table is read once, in pieces. A
    name that has no end within `MAX_NAME` is left out. `TooMuch` if all together are too long: they can overlap."""
    import numpy as np

    total = 0
    indices, vaddrs = indices[indices < size], vaddrs[indices < size]
    edges = np.searchsorted(indices, np.arange(0, size + _PIECE, _PIECE))
    for number, (first, last) in enumerate(pairwise(edges.tolist())):
        if first == last:
            continue
        begin = number * _PIECE
        piece = elf.source.read(offset + begin, min(_PIECE + MAX_NAME, size - begin))
        for index, vaddr in zip(indices[first:last].tolist(), vaddrs[first:last].tolist(), strict=True):
            end = piece.find(b"\0", index - begin, index - begin + MAX_NAME)
            if end >= 0:
                total += end - index + begin
                yield piece[index - begin : end], vaddr
            else:
                total += MAX_NAME
            if total > _MAX_NAMES:
                raise TooMuch(f"names of its functions have over {_MAX_NAMES >> 20} MB")


def _key(name: str) -> tuple[bool, int, bool, int, str]:
    return better_name(name, local=False, weak=False)


def _defined(elf: ElfFile, table: np.void) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """Indices of the names, sorted, and addresses of functions that are not only referred to."""
    import numpy as np

    pieces = []
    for rows in elf.symbol_pieces(table):
        rows = rows[(rows["shndx"] > 0) & (rows["info"] & 15 == _STT_FUNC) & (rows["value"] > 0)]
        pieces.append((rows["name"].astype(np.uint32), rows["value"].astype(np.uint64)))
    indices, vaddrs = (np.concatenate(column) for column in zip(*pieces, strict=True))
    order = np.argsort(indices, kind="stable")
    return indices[order], vaddrs[order]
