"""Variables of one file by their names: where they are in memory."""

from __future__ import annotations

from collections.abc import Collection

from .elf import ElfFile, TooMuch

_OBJECT = 1
"""STT_OBJECT of elf.h."""
_MAX_STRINGS = 256 << 20
"""Bytes of a table of names that are searched, `_PIECE` at a time."""
_PIECE = 1 << 22


def variables_named(elf: ElfFile, wanted: set[bytes], kinds: Collection[int]) -> dict[bytes, int]:
    """The virtual addresses of these variables, from tables of these kinds. ElfError for a damaged file."""
    found: dict[bytes, int] = {}
    for table in elf.symbol_tables(kinds):
        places = _places(elf, *elf.strings(table), wanted - found.keys())
        for rows in elf.symbol_pieces(table) if places else ():
            rows = rows[(rows["shndx"] > 0) & (rows["info"] & 15 == _OBJECT) & (rows["size"] > 0)]
            for at, name in places.items():
                values = rows["value"][rows["name"] == at]
                if len(values):
                    found[name] = int(values[-1])
        if wanted <= found.keys():
            break
    return found


def _places(elf: ElfFile, offset: int, size: int, wanted: Collection[bytes]) -> dict[int, bytes]:
    """Places where each of these names first is in a table of names, if it is there."""
    if size > _MAX_STRINGS:
        raise TooMuch("absurd names of symbols")
    needles = {name: b"\0" + name + b"\0" for name in wanted}
    overlap = max(map(len, needles.values()), default=0)
    found: dict[bytes, int] = {}
    for begin in range(0, size, _PIECE):
        piece = elf.source.read(offset + begin, min(_PIECE + overlap, size - begin))
        for name, needle in needles.items():
            at = -1 if name in found else piece.find(needle)
            if at >= 0:
                found[name] = begin + at + 1
    return {at: name for name, at in found.items()}
