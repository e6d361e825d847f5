"""Symbols of data: the variable that contains a virtual address of one file."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from .elf import ElfError, ElfFile, TooMuch, read_string
from .symtab import better_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_STT_OBJECT = 1
_STB_LOCAL, _STB_WEAK = 0, 2
_PT_LOAD, _PF_W = 1, 2
_MOST_NAMES = 64
_MOST_VARIABLES = 1 << 20


def is_data(elf: ElfFile, vaddr: int) -> bool:
    """Whether a virtual address is in memory of the file that can be written, with or without content in the file."""
    return any(s.type == _PT_LOAD and s.flags & _PF_W and s.vaddr <= vaddr < s.vaddr + s.memsz for s in elf.segments)


def variable_at(elf: ElfFile, vaddr: int) -> tuple[str, int] | None:
    """The raw (mangled) name of the variable that contains the address, and the address's offset in it; the innermost
    if there are several. None if no symbol with a size covers it. ElfError for a damaged table."""
    found: dict[tuple[int, tuple[bool, int, bool, int, str]], tuple[str, int]] = {}
    for strings, rows in _variables(elf):
        for row in _covering(rows, vaddr)[:_MOST_NAMES]:
            raw = read_string(elf.source, *strings, int(row["name"]))
            if not raw:
                continue
            name, binding = raw.decode("utf-8", "backslashreplace"), int(row["info"]) >> 4
            rank = better_name(name, local=binding == _STB_LOCAL, weak=binding == _STB_WEAK)
            offset = vaddr - int(row["value"])
            found[offset, rank] = name, offset
    return found[min(found)] if found else None


@lru_cache(maxsize=4)
def _variables(elf: ElfFile) -> list[tuple[tuple[int, int], NDArray[np.void]]]:
    """Place of the names, and rows of variables, for each symbol table. `TooMuch` for an absurd number."""
    import numpy as np

    found = []
    for table in elf.symbol_tables():
        pieces = [_of_variables(rows) for rows in elf.symbol_pieces(table)]
        if sum(map(len, pieces)) > _MOST_VARIABLES:
            raise TooMuch(f"it has over {_MOST_VARIABLES:,} variables")
        found.append((elf.strings(table), np.concatenate(pieces)))
    return found


def _of_variables(rows: NDArray[np.void]) -> NDArray[np.void]:
    found: NDArray[np.void] = rows[(rows["info"] & 15 == _STT_OBJECT) & (rows["shndx"] > 0)]
    return found


def _covering(rows: NDArray[np.void], vaddr: int) -> NDArray[np.void]:
    import numpy as np

    value, size = rows["value"].astype(np.uint64), rows["size"].astype(np.uint64)
    address = np.uint64(vaddr)
    found: NDArray[np.void] = rows[(value <= address) & (address - value < size)]
    return found


def variable_in(elf: ElfFile, vaddr: int) -> tuple[str, int] | None:
    """`variable_at`; None for a damaged table, too."""
    try:
        return variable_at(elf, vaddr)
    except ElfError:
        return None
