"""The functions that a file defines, by name: where they begin in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from .elf import SHT_DYNSYM, SHT_SYMTAB, ElfError, ElfFile
from .symtab import better_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_STT_FUNC = 2
_MAX_STRINGS = 256 << 20
_LOAD, _EXECUTABLE = 1, 1
_OF_GO = b".gopclntab", b".data.rel.ro.gopclntab", b".note.go.buildid", b".go.buildinfo"


class Function(NamedTuple):
    """``offset`` in the file; ``code``: its first bytes."""

    name: str
    offset: int
    code: bytes


def find_functions(elf: ElfFile, wanted: Callable[[str], bool], code: int) -> list[Function]:
    """The functions with a wanted name, one per address, sorted by address, with up to ``code`` bytes of their code.

    ElfError for a damaged file.
    """
    names: dict[int, str] = {}
    for table in elf.sections:
        if table["type"] in (SHT_DYNSYM, SHT_SYMTAB) and table["size"]:
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
    return any(elf.section_header(name) is not None for name in _OF_GO)


def function_names(elf: ElfFile) -> list[str]:
    """All of them, sorted."""
    found: set[str] = set()

    def take(name: str) -> bool:
        found.add(name)
        return False

    find_functions(elf, take, 0)
    return sorted(found)


def _add_names(elf: ElfFile, table: np.void, wanted: Callable[[str], bool], names: dict[int, str]) -> None:
    offset, size = elf.strings(table)
    if size > _MAX_STRINGS:
        raise ElfError("absurd names of symbols")
    strings = elf.source.read(offset, size)
    for index, vaddr in _defined(elf.symbols(table)):
        end = strings.find(b"\0", index)
        if not 0 <= index < end:
            continue
        name = strings[index:end].decode("utf-8", "backslashreplace")
        if wanted(name) and (vaddr not in names or _key(name) < _key(names[vaddr])):
            names[vaddr] = name


def _key(name: str) -> tuple[bool, int, bool, int, str]:
    return better_name(name, local=False, weak=False)


def _defined(rows: NDArray[np.void]) -> list[tuple[int, int]]:
    """(index of the name, address) of functions that are not only referred to."""
    rows = rows[(rows["shndx"] > 0) & (rows["info"] & 15 == _STT_FUNC) & (rows["value"] > 0)]
    return list(zip(rows["name"].tolist(), rows["value"].tolist(), strict=True))
