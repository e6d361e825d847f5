"""Go's own table of functions, which stripped programs have, too: where it is, and the function at an address.

The table is .gopclntab: src/runtime/symtab.go, src/internal/abi/symtab.go and src/debug/gosym/pclntab.go of Go's
source, for Go 1.2, 1.16, 1.18 and 1.20 and newer (the layouts that these versions introduced). Since 1.18 addresses
count from the begin of Go's code: the table's header has it, since 1.26 only ``moduledata`` (src/runtime/symtab.go).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from .elf import MAX_NAME, ElfError, ElfFile, Source, TooMuch, read_string

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SECTIONS = b".gopclntab", b".data.rel.ro.gopclntab"
_GO_2, _GO_16, _GO_18, _GO_20 = 0xFFFFFFFB, 0xFFFFFFFA, 0xFFFFFFF0, 0xFFFFFFF1
_HEAD = struct.Struct("<IHBB")
"""Magic number, nothing, size of the smallest instruction, size of an address."""
_OF_X86_64 = 0, 1, 8
_HEADER = 72
"""Bytes of the longest header."""
_TEXT = 24
"""Offset of the begin of the code in the header of Go 1.18 and newer."""
_MODULE = b".go.module"
"""The section of ``moduledata`` since Go 1.26."""
_FIRST_PC, _MODULE_TEXT = 20 * 8, 22 * 8
"""Offsets in ``moduledata``: the first function, the begin of the code. At 0 is the address of the table."""
_PT_LOAD, _PT_DYNAMIC, _PT_NOTE = 1, 2, 4
_PF_X, _PF_W = 1, 2
_DT_RELA, _DT_RELASZ = 7, 8
_RELATIVE = 8
"""R_X86_64_RELATIVE."""
_NOTE = b"\x04\0\0\0Go\0\0"
"""Type and name of the note with Go's build id (src/cmd/link/internal/ld/elf.go)."""
_MAX_DYNAMIC, _MAX_RELOCATIONS, _MAX_NOTES = 1 << 16, 64 << 20, 1 << 16
_MAX_SEARCHED, _PIECE = 256 << 20, 16 << 20
"""Bytes of a file that are searched where no section header has the table, or ``moduledata``, and at a time."""
_MAX_PLACES = 64
"""Places that look like one of them, of which each is checked."""
_MAX_FUNCTIONS = 1 << 21
_MAX_READ = 64 << 20
"""Bytes of names that are read of one file: many functions can have the same long name."""


class GoPlace(NamedTuple):
    """Place of a table in a file, in bytes."""

    offset: int
    size: int
    text: int
    """Virtual address that Go 1.18 and newer count functions from."""


class GoHeader(NamedTuple):
    """The header's fields: offsets in the table."""

    number: int
    names: int
    steps: int
    """Changes of the stack pointer count from here."""
    records: int
    """Records of functions count from here."""
    functions: int
    """The sorted pairs of an address and the offset of a record."""
    is_new: bool
    """Whether it is of Go 1.18 or newer: fields of 4 bytes, relative to the begin of the code."""


def is_go_table(data: bytes) -> bool:
    """Whether these bytes begin like a table of a known layout, of a program for x86-64."""
    magic, *rest = _HEAD.unpack_from(data) if len(data) >= _HEADER else (0,)
    return magic in (_GO_2, _GO_16, _GO_18, _GO_20) and tuple(rest) == _OF_X86_64


def go_header(data: bytes) -> GoHeader:
    """The header of a table. ValueError for an absurd number of functions."""
    (magic,) = struct.unpack_from("<I", data)
    is_new = magic in (_GO_18, _GO_20)
    if magic == _GO_2:
        (count,), names, steps, records, functions = struct.unpack_from("<Q", data, 8), 0, 0, 0, 16
    else:
        fields = struct.unpack_from("<8Q", data, 8)
        count, (names, _, _, steps, records) = fields[0], fields[3:8] if is_new else fields[2:7]
        functions = records
    if count > _MAX_FUNCTIONS:
        raise ValueError
    return GoHeader(count, names, steps, records, functions, is_new)


def has_go_note(elf: ElfFile) -> bool:
    """Whether a note says that Go's linker made the file; programs without section headers have it, too."""
    for segment in elf.segments:
        if segment.type == _PT_NOTE and _NOTE in _read(elf, segment.offset, min(segment.filesz, _MAX_NOTES)):
            return True
    return False


def find_go_table(elf: ElfFile) -> GoPlace | None:
    """The table of a 64-bit Go program; None when the file has none, or one of an unknown layout."""
    words = _Words(elf)
    for offset, size, vaddr in _candidates(elf):
        head = _read(elf, offset, min(size, _HEADER))
        if not is_go_table(head):
            continue
        try:
            header = go_header(head)
        except ValueError:
            continue
        text = _text(elf, words, header, offset, vaddr) if header.is_new else 0
        if text is not None:
            return GoPlace(offset, size, text)
    return None


class GoFunctions:
    """The functions of a table. ElfError for a damaged one, `TooMuch` for one with more than ``most``."""

    def __init__(self, source: Source, place: GoPlace, most: int = _MAX_FUNCTIONS) -> None:
        import numpy as np

        self._source, self._place = source, place
        try:
            self._header = header = go_header(self._at(0, min(_HEADER, place.size)))
        except (struct.error, ValueError) as error:
            raise ElfError("damaged .gopclntab") from error
        if header.number > most:
            raise TooMuch(f"over {most:,} symbols")
        kind = np.dtype("<u4" if header.is_new else "<u8")
        data = self._at(header.functions, (2 * header.number + 1) * kind.itemsize)
        columns = np.frombuffer(data, kind).astype(np.uint64)
        self._starts = columns[::2] + np.uint64(place.text)
        self._records = columns[1::2]
        if np.any(self._starts[1:] < self._starts[:-1]):
            raise ElfError("damaged .gopclntab")
        self._names: dict[int, str | None] = {}
        self._bytes = 0
        self.unread = 0
        """Names that were not read, because the others of the file are too long."""

    def __len__(self) -> int:
        return self._header.number

    def find(self, addresses: NDArray[np.uint64]) -> list[str | None]:
        """The name of the function that covers each virtual address, None where none does."""
        import numpy as np

        found = np.searchsorted(self._starts, addresses, side="right") - 1
        # The last start is the end of the code.
        return [self._name(i) if 0 <= i < len(self) else None for i in found.tolist()]

    def _name(self, function: int) -> str | None:
        if function not in self._names:
            self._names[function] = self._read_name(function)
        return self._names[function]

    def _read_name(self, function: int) -> str | None:
        if self._bytes > _MAX_READ:
            self.unread += 1
            return None
        record = struct.Struct("<Ii" if self._header.is_new else "<Qi")
        try:
            start, name = record.unpack(self._at(self._header.records + int(self._records[function]), record.size))
        except ElfError:
            return None
        # A record says itself where its function begins.
        if start + self._place.text != int(self._starts[function]) or name < 0:
            return None
        offset, size = self._place.offset, self._place.size
        raw = read_string(self._source, offset, size, self._header.names + name)
        self._bytes += MAX_NAME if raw is None else len(raw)
        # Where types of functions have a number, symbol tables have a dot.
        return raw.decode("utf-8", "backslashreplace").replace("·", ".") if raw else None

    def _at(self, offset: int, size: int) -> bytes:
        if offset + size > self._place.size:
            raise ElfError("damaged .gopclntab")
        return self._source.read(self._place.offset + offset, size)


class _Words:
    """Words of a file's data, as they are once it is loaded at its own addresses."""

    def __init__(self, elf: ElfFile) -> None:
        self._elf = elf
        self._relocations: NDArray[np.void] | None = None

    def at(self, vaddr: int) -> int:
        """The word at a virtual address: the relocation's if there is one; 0 where there is nothing."""
        import numpy as np

        rows = self.relocations
        found = rows["addend"][np.flatnonzero(rows["offset"] == vaddr)[:1]].tolist()
        if found:
            return int(found[0])
        for s in self._elf.segments:
            if s.type == _PT_LOAD and s.vaddr <= vaddr and vaddr + 8 <= s.vaddr + s.filesz:
                data = _read(self._elf, s.offset + vaddr - s.vaddr, 8)
                return int.from_bytes(data, "little")
        return 0

    def holding(self, value: int) -> Iterator[int]:
        """Virtual addresses of words with this value, in data that can be written; some of them if there are many."""
        import numpy as np

        rows = self.relocations
        yield from rows["offset"][np.flatnonzero(rows["addend"] == value)[:_MAX_PLACES]].tolist()
        for offset, vaddr in _search(self._elf, value.to_bytes(8, "little"), _PF_W):
            if offset % 8 == 0:
                yield vaddr

    @property
    def relocations(self) -> NDArray[np.void]:
        """Relocations that only add the address at which the file is loaded."""
        import numpy as np

        if self._relocations is None:
            kind = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])
            data = _relocations(self._elf)
            rows = np.frombuffer(data[: len(data) // kind.itemsize * kind.itemsize], kind)
            self._relocations = rows[rows["info"] == _RELATIVE]
        return self._relocations


def _relocations(elf: ElfFile) -> bytes:
    """The content of the table of relocations, which the dynamic section names."""
    for segment in elf.segments:
        if segment.type == _PT_DYNAMIC:
            dynamic = _read(elf, segment.offset, min(segment.filesz, _MAX_DYNAMIC) & ~15)
            tags = dict(struct.iter_unpack("<QQ", dynamic))
            begin, size = tags.get(_DT_RELA, 0), min(tags.get(_DT_RELASZ, 0), _MAX_RELOCATIONS)
            for s in elf.segments:
                if s.type == _PT_LOAD and s.vaddr <= begin < s.vaddr + s.filesz:
                    return _read(elf, s.offset + begin - s.vaddr, min(size, s.vaddr + s.filesz - begin))
    return b""


def _candidates(elf: ElfFile) -> Iterator[tuple[int, int, int]]:
    """Offset, size and virtual address of what may be a table."""
    for name in _SECTIONS:
        header = elf.section_header(name)
        if header is not None:
            yield int(header["offset"]), int(header["size"]), int(header["addr"])
            return
    # There may be no section headers, or the C compiler's linker has put it into .data.rel.ro with other data.
    if has_go_note(elf):
        for magic in (_GO_20, _GO_18, _GO_16, _GO_2):
            for offset, vaddr in _search(elf, _HEAD.pack(magic, *_OF_X86_64), 0):
                end = max(s.offset + s.filesz for s in elf.segments if s.offset <= offset < s.offset + s.filesz)
                yield offset, end - offset, vaddr


def _search(elf: ElfFile, wanted: bytes, flags: int) -> Iterator[tuple[int, int]]:
    """File offsets and virtual addresses of these bytes in segments with these flags; some of them if there are
    many."""
    left, places = _MAX_SEARCHED, _MAX_PLACES
    for segment in elf.segments:
        if segment.type != _PT_LOAD or segment.flags & flags != flags:
            continue
        for begin in range(0, min(segment.filesz, left), _PIECE):
            data = _read(elf, segment.offset + begin, min(_PIECE + len(wanted) - 1, segment.filesz - begin))
            at = data.find(wanted)
            while at >= 0 and places:
                yield segment.offset + begin + at, segment.vaddr + begin + at
                places -= 1
                at = data.find(wanted, at + 1)
        left -= min(segment.filesz, left)


def _text(elf: ElfFile, words: _Words, header: GoHeader, offset: int, vaddr: int) -> int | None:
    """Begin of the code that the table at ``vaddr`` describes; None when nothing tells."""
    if text := words.at(vaddr + _TEXT):
        return text
    first = _read(elf, offset + header.functions, 4)
    module = elf.section_header(_MODULE)
    for at in [int(module["addr"])] if module is not None else words.holding(vaddr):
        text = words.at(at + _MODULE_TEXT)
        if text and words.at(at) == vaddr and words.at(at + _FIRST_PC) == text + int.from_bytes(first, "little"):
            return text
    return None


def _read(elf: ElfFile, offset: int, size: int) -> bytes:
    """Bytes of the file; b"" where they are not."""
    try:
        return elf.source.read(offset, size)
    except ElfError:
        return b""
