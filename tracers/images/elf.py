"""The parts of an ELF file that symbolising needs: segments, sections, notes, links to debug files, raw symbols.

Layouts are those of the System V ABI (elf(5)). Files are hostile: each offset and size is checked
against the file before anything is read, and what does not fit is refused with an `ElfError`. Files
are read by pread, never mapped: their owner could truncate one and kill us by SIGBUS.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHT_SYMTAB, SHT_NOTE, SHT_NOBITS, SHT_DYNSYM = 2, 7, 8, 11
SHF_ALLOC, SHF_EXECINSTR = 2, 4
_PT_LOAD, _PT_NOTE = 1, 4
_PF_X = 1
_ET_EXEC, _ET_DYN = 2, 3
_NT_GNU_BUILD_ID = 3

_PAGE = 4096
_MAX_SEGMENTS, _MAX_SECTIONS = 1 << 7, 1 << 13
"""Linkers make about ten and forty."""
_MAX_NOTES = 1 << 16
MAX_SYMBOLS = 3_000_000
"""Number of symbols of a table, and of a file's tables together."""
_PIECE = 1 << 18
"""Symbols that are read at a time."""
MAX_NAME = 1 << 16
"""Bytes of a symbol's name; longer ones are left out."""
_MAX_NAMES = 1 << 24
_MAX_EMBEDDED = 64 << 20
"""Maximum size of a decompressed .gnu_debugdata."""

_SHDR32 = [(n, "<u4") for n in ("name", "type", "flags", "addr", "offset", "size", "link", "info", "align", "entsize")]
_SHDR64 = [
    ("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("addr", "<u8"), ("offset", "<u8"), ("size", "<u8"),
    ("link", "<u4"), ("info", "<u4"), ("align", "<u8"), ("entsize", "<u8"),
]  # fmt: skip
_SYM32 = [("name", "<u4"), ("value", "<u4"), ("size", "<u4"), ("info", "u1"), ("other", "u1"), ("shndx", "<u2")]
_SYM64 = [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("shndx", "<u2"), ("value", "<u8"), ("size", "<u8")]


class ElfError(Exception):
    """Reason why a file is not used."""


class TooMuch(ElfError):
    """Error for a file that has more of something than is read."""


class Source(Protocol):
    """Bytes that can be read piece by piece."""

    size: int

    def read(self, offset: int, size: int) -> bytes:
        """Exactly ``size`` bytes at ``offset``; ElfError when they are not there."""


class FileSource:
    """An open file. The descriptor stays the caller's."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        try:
            self.size = os.fstat(fd).st_size
        except OSError as error:
            raise ElfError(f"cannot be read: {error.strerror}") from error

    def read(self, offset: int, size: int) -> bytes:
        """See `Source`."""
        if offset < 0 or size < 0 or offset + size > self.size:
            raise ElfError("truncated, or offsets beyond its end")
        try:
            data = os.pread(self.fd, size, offset)
            while 0 < len(data) < size:
                more = os.pread(self.fd, size - len(data), offset + len(data))
                if not more:
                    break
                data += more
        except (OSError, OverflowError) as error:
            raise ElfError(f"cannot be read: {error}") from error
        if len(data) != size:
            raise ElfError("cut short while it was read")
        return data


class BytesSource:
    """A file image in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read(self, offset: int, size: int) -> bytes:
        """See `Source`."""
        if offset < 0 or size < 0 or offset + size > self.size:
            raise ElfError("truncated, or offsets beyond its end")
        return self._data[offset : offset + size]


class Segment(NamedTuple):
    """A program header, sizes and offsets in bytes."""

    type: int
    flags: int
    offset: int
    vaddr: int
    filesz: int
    memsz: int


class ElfFile:
    """Headers of one little-endian ELF executable or shared library (or its debug file), 32 or 64 bits."""

    def __init__(self, source: Source) -> None:
        import numpy as np

        self.source = source
        ident = source.read(0, 20)
        if ident[:4] != b"\x7fELF":
            raise ElfError("not an ELF file")
        if ident[4] not in (1, 2) or ident[5] != 1 or ident[6] != 1:
            raise ElfError("an ELF file of another byte order or version")
        self.is_64 = ident[4] == 2
        layout = "<HHIQQQIHHHHHH" if self.is_64 else "<HHIIIIIHHHHHH"
        header = struct.unpack(layout, source.read(16, struct.calcsize(layout)))
        kind, self.machine, _, _, phoff, shoff, _, _, phentsize, phnum, shentsize, shnum, shstrndx = header
        if kind not in (_ET_EXEC, _ET_DYN):
            raise ElfError("neither an executable nor a shared library")
        self.segments = self._read_segments(phoff, phentsize, phnum)
        self._section_dtype = np.dtype(_SHDR64 if self.is_64 else _SHDR32)
        self.sections = self._read_sections(shoff, shentsize, shnum)
        """One structured row per section header: name, type, flags, addr, offset, size, link, info, align, entsize."""
        self._shstrndx = shstrndx
        self._names: tuple[bytes, list[tuple[int, int]]] | None = None

    @property
    def code_end(self) -> int:
        """End of the highest executable segment, as a virtual address; 0 when there is none."""
        return max((s.vaddr + s.memsz for s in self.segments if s.type == _PT_LOAD and s.flags & _PF_X), default=0)

    def to_vaddrs(self, offsets: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """File offsets as virtual addresses, by the executable PT_LOAD segments, and which are in exactly one."""
        import numpy as np

        vaddrs = np.zeros(len(offsets), np.uint64)
        hits = np.zeros(len(offsets), np.uint32)
        known = np.zeros(len(offsets), bool)
        for segment in self.segments:
            if segment.type != _PT_LOAD or not segment.flags & _PF_X:
                continue
            if segment.offset + segment.filesz >= 1 << 64 or segment.vaddr + segment.filesz >= 1 << 64:
                continue
            inside = (offsets >= segment.offset) & (offsets < segment.offset + segment.filesz)
            there = offsets - np.uint64(segment.offset) + np.uint64(segment.vaddr)
            hits += inside & ~(known & (vaddrs == there))
            vaddrs = np.where(inside, there, vaddrs)
            known |= inside
        return vaddrs, hits == 1

    def mapped_at(self, offset: int) -> int | None:
        """The virtual address at which a mapping begins that begins at a file offset; None where nothing is mapped."""
        for s in self.segments:
            if s.type == _PT_LOAD and s.offset <= offset < s.offset + s.filesz:
                return s.vaddr + offset - s.offset
        # A mapping begins at the page of its segment's first byte.
        return next(
            (s.vaddr & -_PAGE for s in self.segments if s.type == _PT_LOAD and s.offset & -_PAGE == offset), None
        )

    def to_offset(self, vaddr: int) -> int | None:
        """A virtual address of code, or the one just behind it, as a file offset; None where there is no code."""
        for s in self.segments:
            if s.type == _PT_LOAD and s.flags & _PF_X and s.vaddr <= vaddr <= s.vaddr + s.filesz:
                return s.offset + vaddr - s.vaddr
        return None

    def mapped_from(self, size: int) -> int | None:
        """The virtual address at which a mapping of so many bytes begins: of the code alone, or of all from the first
        segment to behind the code. None if it is neither."""
        loaded = [s for s in self.segments if s.type == _PT_LOAD]
        code = [s for s in loaded if s.flags & _PF_X]
        if len(code) != 1:
            return None
        begin, end = code[0].vaddr & -_PAGE, _page_end(code[0].vaddr + code[0].filesz)
        first, last = loaded[0].vaddr & -_PAGE, _page_end(loaded[-1].vaddr + loaded[-1].memsz)
        if size == end - begin:
            return begin
        return first if end - first <= size <= last - first else None

    def section(self, name: bytes) -> bytes | None:
        """Content of the first section called ``name``, at most 64 MiB; None when there is none."""
        row = self.section_header(name)
        if row is None:
            return None
        if int(row["size"]) > _MAX_EMBEDDED:
            raise ElfError(f"section {os.fsdecode(name)} is too large")
        return self.source.read(int(row["offset"]), int(row["size"]))

    def section_header(self, name: bytes) -> Any:
        """The row of `sections` of the first section called ``name`` that has content in the file; None without one."""
        names, kinds = self._section_names()
        for i, (kind, at) in enumerate(kinds):
            if kind != SHT_NOBITS and names.startswith(name + b"\0", at):
                return self.sections[i]
        return None

    def build_id(self) -> str:
        """Lower-case hex of the GNU build-id note, "" when there is none."""
        places = [(int(r["offset"]), int(r["size"])) for r in self.sections if r["type"] == SHT_NOTE]
        places += [(s.offset, s.filesz) for s in self.segments if s.type == _PT_NOTE]
        for offset, size in places[:64]:
            if 0 < size <= _MAX_NOTES and offset + size <= self.source.size:
                found = _build_id_note(self.source.read(offset, size))
                if found:
                    return found
        return ""

    def debug_link(self) -> tuple[str, int] | None:
        """(file name, CRC-32 of that file) from .gnu_debuglink; None when there is none or it is not a plain name."""
        data = self.section(b".gnu_debuglink")
        if data is None or len(data) > 4096:
            return None
        end = data.find(b"\0")
        crc_at = (end + 4) & ~3
        if end <= 0 or len(data) < crc_at + 4 or b"/" in data[:end] or data[:end] in (b".", b".."):
            return None
        return os.fsdecode(data[:end]), int(struct.unpack_from("<I", data, crc_at)[0])

    def embedded(self) -> ElfFile | None:
        """The file in .gnu_debugdata (xz: function symbols of a stripped program); None when there is none."""
        import lzma

        packed = self.section(b".gnu_debugdata")
        if packed is None:
            return None
        try:
            data = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=128 << 20).decompress(packed, _MAX_EMBEDDED)
        except (lzma.LZMAError, MemoryError, EOFError) as error:
            raise ElfError("damaged .gnu_debugdata") from error
        return ElfFile(BytesSource(data))

    def symbol_tables(self, kinds: Collection[int] = (SHT_SYMTAB, SHT_DYNSYM)) -> list[Any]:
        """The headers of the symbol tables of these kinds, in their order. ElfError for more than one of a kind, which
        the System V ABI does not allow: each would cost the time and memory of all its symbols."""
        import numpy as np

        found = [self.sections[i] for i in np.flatnonzero(np.isin(self.sections["type"], list(kinds))).tolist()[:16]]
        found = [row for row in found if row["size"]]
        if len({int(row["type"]) for row in found}) < len(found):
            raise TooMuch("more than one symbol table of a kind")
        return found

    def symbols(self, table: Any) -> NDArray[np.void]:
        """Rows (name, info, other, shndx, value, size) of one symbol table section. `TooMuch` for an absurd number."""
        import numpy as np

        pieces = list(self.symbol_pieces(table))
        return np.concatenate(pieces) if len(pieces) != 1 else pieces[0]

    def symbol_pieces(self, table: Any) -> Iterator[NDArray[np.void]]:
        """Symbols of a table, some at a time, for tables of which a part is kept; there is at least one piece."""
        import numpy as np

        dtype = np.dtype(_SYM64 if self.is_64 else _SYM32)
        count, begin = int(table["size"]) // dtype.itemsize, int(table["offset"])
        if int(table["entsize"]) not in (0, dtype.itemsize):
            raise ElfError("absurd symbol table")
        if count > MAX_SYMBOLS:
            raise TooMuch(f"a table has over {MAX_SYMBOLS:,} symbols")
        for first in range(0, max(count, 1), _PIECE):
            size = min(_PIECE, count - first) * dtype.itemsize
            yield np.frombuffer(self.source.read(begin + first * dtype.itemsize, size), dtype)

    def strings(self, table: Any) -> tuple[int, int]:
        """(offset, size) in the file of the string table that ``table`` is linked to."""
        link = int(table["link"])
        if not 0 < link < len(self.sections) or self.sections[link]["type"] == SHT_NOBITS:
            raise ElfError("symbol table without names")
        offset, size = int(self.sections[link]["offset"]), int(self.sections[link]["size"])
        if offset + size > self.source.size:
            raise ElfError("truncated, or offsets beyond its end")
        return offset, size

    def code_at(self, vaddr: int, size: int) -> bytes:
        """``size`` bytes of code at a virtual address; b"" where there is none."""
        for s in self.segments:
            if s.type == _PT_LOAD and s.flags & _PF_X and s.vaddr <= vaddr and vaddr + size <= s.vaddr + s.filesz:
                return self.source.read(s.offset + vaddr - s.vaddr, size)
        return b""

    def _read_segments(self, offset: int, entsize: int, count: int) -> list[Segment]:
        layout = struct.Struct("<IIQQQQQQ" if self.is_64 else "<IIIIIIII")
        if not count:
            return []
        if entsize != layout.size or count > _MAX_SEGMENTS:
            raise ElfError("absurd program headers")
        rows = layout.iter_unpack(self.source.read(offset, count * layout.size))
        if self.is_64:
            return [Segment(kind, flags, off, vaddr, fsz, msz) for kind, flags, off, vaddr, _, fsz, msz, _ in rows]
        return [Segment(kind, flags, off, vaddr, fsz, msz) for kind, off, vaddr, _, fsz, msz, flags, _ in rows]

    def _read_sections(self, offset: int, entsize: int, count: int) -> NDArray[np.void]:
        import numpy as np

        dtype = self._section_dtype
        if not offset:
            return np.zeros(0, dtype)
        if entsize != dtype.itemsize:
            raise ElfError("absurd section headers")
        if not count:  # too many for the header: the first section's size is the number
            count = int(np.frombuffer(self.source.read(offset, entsize), dtype)[0]["size"])
        if count > _MAX_SECTIONS:
            raise ElfError("absurd section headers")
        return np.frombuffer(self.source.read(offset, count * entsize), dtype)

    def _section_names(self) -> tuple[bytes, list[tuple[int, int]]]:
        """The table of names, and for each section its type and the offset of its name; read once."""
        if self._names is None:
            table = b""
            if 0 < self._shstrndx < len(self.sections):
                row = self.sections[self._shstrndx]
                with contextlib.suppress(ElfError):
                    table = self.source.read(int(row["offset"]), min(int(row["size"]), _MAX_NAMES))
            kinds = zip(self.sections["type"].tolist(), self.sections["name"].tolist(), strict=True)
            self._names = table, list(kinds)
        return self._names


def _page_end(address: int) -> int:
    return (address + _PAGE - 1) & -_PAGE


def read_string(source: Source, offset: int, size: int, index: int, limit: int = MAX_NAME) -> bytes | None:
    """The NUL-terminated string at ``index`` of the string table at [offset, offset+size).

    None when it is longer than ``limit``, has no end, or cannot be read.
    """
    step = 128
    while index < size:
        step = min(step, size - index, limit)
        try:
            data = source.read(offset + index, step)
        except ElfError:
            return None
        end = data.find(b"\0")
        if end >= 0:
            return data[:end]
        if step in (size - index, limit):
            return None
        step *= 8
    return None


def _build_id_note(notes: bytes) -> str:
    # elf(5), Notes: namesz, descsz, type; name and descriptor each padded to 4 bytes.
    at = 0
    while at + 12 <= len(notes):
        namesz, descsz, kind = struct.unpack_from("<III", notes, at)
        desc = at + 12 + ((namesz + 3) & ~3)
        if desc + descsz > len(notes):
            break
        if kind == _NT_GNU_BUILD_ID and notes[at + 12 : at + 12 + namesz] == b"GNU\0" and 4 <= descsz <= 64:
            return notes[desc : desc + descsz].hex()
        at = desc + ((descsz + 3) & ~3)
    return ""
