"""Small ELF files with chosen content, and where a file's fields are, for damaging them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from stallscope.tracers.images.elf import BytesSource, ElfError, ElfFile

SEGMENT = (4, 4, 8, 8, 8, 8, 8, 8)
SECTION = (4, 4, 8, 8, 8, 8, 4, 4, 8, 8)
SYMBOL = (4, 1, 1, 2, 8, 8)
"""Sizes of the fields of Elf64_Phdr, Elf64_Shdr and Elf64_Sym."""
PROGBITS, SYMTAB, STRTAB, DYNAMIC, NOTE, DYNSYM = 1, 2, 3, 6, 7, 11
_ALLOC, _EXEC = 2, 4
_KINDS = {
    ".symtab": SYMTAB,
    ".dynsym": DYNSYM,
    ".strtab": STRTAB,
    ".dynstr": STRTAB,
    ".dynamic": DYNAMIC,
    ".note.gnu.build-id": NOTE,
    ".note.stapsdt": NOTE,
}
_LINKS = {".symtab": ".strtab", ".dynsym": ".dynstr", ".dynamic": ".dynstr"}
_SEGMENTS = {".note.gnu.build-id": 4, ".eh_frame_hdr": 0x6474E550, ".dynamic": 2, ".interp": 3}
_SIZES = {".symtab": 24, ".dynsym": 24, ".dynamic": 16}
DATA = 1 << 24
"""Place where the file is mapped a second time, to be written; virtual addresses of code are offsets in the file."""


class SparseSource(BytesSource):
    """A file with a hole at its end."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__(data)
        self._bytes = data
        self.size = max(size, len(data))

    def read(self, offset: int, size: int) -> bytes:
        """See `stallscope.tracers.images.elf.Source`."""
        if offset < 0 or size < 0 or offset + size > self.size:
            raise ElfError("truncated, or offsets beyond its end")
        found = self._bytes[offset : offset + size]
        return found + bytes(size - len(found))


def content(data: bytes) -> tuple[bytes, int]:
    """The bytes of a file, and its size: what ends in SPRS and a number is as large as that."""
    if data[-12:-8] == b"SPRS":
        return data[:-12], struct.unpack("<Q", data[-8:])[0] & (1 << 40) - 1
    return data, len(data)


def opened(data: bytes) -> ElfFile:
    """The file. ElfError like `ElfFile`."""
    return ElfFile(SparseSource(*content(data)))


class Layout(NamedTuple):
    """Offsets of headers and symbols in a 64-bit file, and (begin, end) of its sections."""

    segments: list[int]
    sections: list[int]
    symbols: list[int]
    contents: list[tuple[int, int]]

    @classmethod
    def of(cls, data: bytes) -> Layout | None:
        """None if it is not an ELF file with a whole header."""
        if len(data) < 64 or data[:5] != b"\x7fELF\x02":
            return None
        phoff, shoff, _, _, _, phnum, _, shnum, _ = struct.unpack_from("<QQIHHHHHH", data, 32)
        segments = [phoff + 56 * i for i in range(min(phnum, 32)) if phoff + 56 * (i + 1) <= len(data)]
        sections = [shoff + 64 * i for i in range(min(shnum, 64)) if shoff + 64 * (i + 1) <= len(data)]
        symbols: list[int] = []
        contents = []
        for at in sections:
            _, kind, _, _, begin, size = struct.unpack_from("<IIQQQQ", data, at)
            if begin + size <= len(data) and size:
                contents.append((begin, begin + size))
                if kind in (SYMTAB, DYNSYM, DYNAMIC):
                    symbols += range(begin, begin + min(size, 2400) - 23, 24)
        return cls(segments, sections, symbols, contents)


def symbol(name: int, value: int, size: int, *, kind: int = 2, binding: int = 1, section: int = 1) -> bytes:
    """One of a table; the default is an exported function in the first section."""
    return struct.pack("<IBBHQQ", name, binding << 4 | kind, 0, section, value, size)


def note(owner: bytes, kind: int, description: bytes) -> bytes:
    """One of a section of notes."""
    padded = [part + bytes(-len(part) % 4) for part in (owner, description)]
    return struct.pack("<III", len(owner), len(description), kind) + b"".join(padded)


def image(sections: Sequence[tuple[str, bytes]], *, kind: int = 3, machine: int = 62) -> bytes:
    """A file with these sections; the first has number 1, and lies at `TEXT` if it is not empty."""
    names = ["", *(name for name, _ in sections), ".shstrtab"]
    table = b"\0".join(name.encode() for name in names) + b"\0"
    contents = [b"", *(data for _, data in sections), table]
    segments = 2 + sum(name in _SEGMENTS for name in names)
    at = 64 + 56 * segments
    body, places = b"", []
    for data in contents:
        body += bytes(-(at + len(body)) % 16)
        places.append(at + len(body))
        body += data
    shoff = at + len(body)
    size = shoff + 64 * len(names)
    programs = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, size, size, 4096)
    programs += struct.pack("<IIQQQQQQ", 1, 6, 0, DATA, DATA, size, size, 4096)
    headers, name_at = b"", 0
    for name, data, place in zip(names, contents, places, strict=True):
        if name in _SEGMENTS:
            programs += struct.pack("<IIQQQQQQ", _SEGMENTS[name], 4, place, place, place, len(data), len(data), 4)
        flags = _ALLOC | (_EXEC if name == ".text" else 0) if name else 0
        link = names.index(_LINKS[name]) if _LINKS.get(name) in names else 0
        values = (name_at, _KINDS.get(name, PROGBITS) if name else 0, flags, place if name else 0)
        headers += struct.pack("<IIQQQQIIQQ", *values, place if name else 0, len(data), link, 0, 1, _SIZES.get(name, 0))
        name_at += len(name) + 1
    numbers = (kind, machine, 1, places[1], 64, shoff, 0, 64, 56, segments, 64, len(names), len(names) - 1)
    return b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack("<HHIQQQIHHHHHH", *numbers) + programs + body + headers


def section_at(data: bytes, number: int) -> int:
    """Place of the content of a section of an `image`: its offset and its address."""
    shoff = struct.unpack_from("<Q", data, 40)[0]
    return int(struct.unpack_from("<Q", data, shoff + 64 * number + 24)[0])


def text_at(sections: int) -> int:
    """The address of the first section of an `image` with so many program headers beyond two."""
    return -(-(64 + 56 * (2 + sections)) // 16) * 16
