"""USDT probes of a file: places that the program's authors have named, in the notes of ``.note.stapsdt``.

Format: https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation. The file is hostile: a note that does not
fit is left out.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from .elf import ElfFile, Segment

_OWNER, _TYPE = b"stapsdt\0", 3
_HEAD = struct.Struct("<III")
"""namesz, descsz, type."""
_PLACES = struct.Struct("<QQQ")
"""Address of the probe, that of .stapsdt.base when the file was linked, address of the semaphore; 0: none."""
_MOST = 1 << 18
"""Notes that are read."""
_LONGEST = 1 << 12
"""Bytes of a note."""
_LOAD, _EXECUTABLE, _WRITABLE = 1, 1, 2


class Site(NamedTuple):
    """An instruction of a probe. ``counter``: offset in the file of the 16-bit number of its observers, which the
    program looks at; 0: none. ``arguments``: where they are, ``-4@%edi 8@%rsi``: size in bytes, negative if signed."""

    offset: int
    address: int
    counter: int
    arguments: str


class UsdtProbe(NamedTuple):
    """``provider:name`` with all places where the compiler has put it."""

    provider: str
    name: str
    sites: tuple[Site, ...]

    @property
    def title(self) -> str:
        return f"{self.provider}:{self.name}"

    @property
    def arguments(self) -> tuple[str, ...]:
        """Arguments at its first place; at others they can be in other registers."""
        return tuple(self.sites[0].arguments.split())


def usdt_probes(elf: ElfFile) -> list[UsdtProbe]:
    """The probes of a 64-bit file in the order of their names. ElfError for a damaged file."""
    notes = elf.section(b".note.stapsdt") if elf.is_64 else None
    if not notes:
        return []
    header = elf.section_header(b".stapsdt.base")
    base = int(header["addr"]) if header is not None else 0
    found: dict[tuple[str, str], dict[int, Site]] = {}
    for provider, name, arguments, (address, linked, counter) in _notes(notes):
        # Prelinking moves a file's addresses, and not those in its notes.
        moved = base - linked if base else 0
        if site := _site(elf, address + moved, counter + moved if counter else 0, arguments):
            found.setdefault((provider, name), {}).setdefault(site.offset, site)
    return [UsdtProbe(*names, tuple(sites.values())) for names, sites in sorted(found.items())]


def _notes(data: bytes) -> Iterator[tuple[str, str, str, tuple[int, int, int]]]:
    """Provider, name, arguments and addresses of each note that is whole."""
    at = 0
    for _ in range(_MOST):
        if at + _HEAD.size > len(data):
            return
        namesz, descsz, kind = _HEAD.unpack_from(data, at)
        begin = at + _HEAD.size + (namesz + 3 & ~3)
        end = begin + descsz
        if end > len(data):
            return
        is_ours = kind == _TYPE and namesz == len(_OWNER) and data.startswith(_OWNER, at + _HEAD.size)
        if is_ours and _PLACES.size < descsz <= _LONGEST:
            texts = data[begin + _PLACES.size : end].split(b"\0")
            if len(texts) > 3 and texts[0] and texts[1]:  # each has an end
                provider, name, arguments = (text.decode("utf-8", "backslashreplace") for text in texts[:3])
                yield provider, name, arguments, _PLACES.unpack_from(data, begin)
        at = end + 3 & ~3


def _site(elf: ElfFile, address: int, counter: int, arguments: str) -> Site | None:
    """None if it is not in the file's code, or its counter not in what a program can write."""
    offset = _offset(elf, address, _EXECUTABLE)
    place = _offset(elf, counter, _WRITABLE) if counter else 0
    if offset is None or place is None:
        return None
    return Site(offset, address, place, arguments)


def _offset(elf: ElfFile, address: int, flag: int) -> int | None:
    """Offset in the file of the byte at this address."""

    def has(s: Segment) -> bool:
        return s.type == _LOAD and bool(s.flags & flag) and 0 <= address - s.vaddr < s.filesz

    segment = next(filter(has, elf.segments), None)
    if segment is None:
        return None
    offset = address - segment.vaddr + segment.offset
    return offset if offset < elf.source.size else None
