"""Finds the sections of frame records in an ELF file, and reads as much of them as possible."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

from ..images.elf import ElfError, ElfFile
from .chain import Section
from .golang import GoTable, find_go
from .prologues import CodeToRead, find_code
from .rules import MACHINE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PT_LOAD, _PT_GNU_EH_FRAME = 1, 0x6474E550
_SHF_COMPRESSED, _ELFCOMPRESS_ZLIB, _ELFCOMPRESS_ZSTD = 0x800, 1, 2
_CHDR = struct.Struct("<IIQQ")
"""Elf64_Chdr, elf(5)."""
_OLD_HEAD = b"ZLIB"
"""Start of .zdebug_frame (before SHF_COMPRESSED): this, the size in 8 bytes, a zlib stream. Go wrote it up to 1.20."""
_MAX_SECTION = 64 << 20
_HIGHEST = 1 << 62
"""Addresses of files' code are below."""
_SDATA4, _UDATA4, _PCREL, _DATAREL = 0x0B, 0x03, 0x10, 0x30
"""DW_EH_PE_*."""


class UnwindError(Exception):
    """Reason why a file has no table: its frames are walked by frame pointers."""


class Sections(NamedTuple):
    """The readable sections of a file."""

    found: list[Section]
    """Sections, the most trusted first."""
    refused: dict[str, int]
    """Sections that cannot be read, by reason."""
    go: GoTable | None = None
    """The table of a Go program."""
    code: CodeToRead | None = None
    """The code, where functions that nothing describes are read."""


def find_sections(elf: ElfFile, debug: ElfFile | None = None) -> Sections:
    """All that rules can be made from. UnwindError when the file is for another machine."""
    sections = find_descriptions(elf, debug)
    go, code = None, None
    try:
        go = find_go(elf)
        code = find_code(elf, _described(elf))
    except ElfError as error:
        sections.refused[f"code: {error}"] = 1
    return sections._replace(go=go, code=code)


def find_descriptions(elf: ElfFile, debug: ElfFile | None = None) -> Sections:
    """.eh_frame and .debug_frame, the latter from the separate debug file if ``elf`` has no readable one.

    UnwindError when the file is for another machine.
    """
    if elf.machine != MACHINE or not elf.is_64:
        raise UnwindError(f"no unwind rules for ELF machine {elf.machine}, {64 if elf.is_64 else 32} bits")
    sections = Sections([], {})
    for name, files in (".eh_frame", [elf]), (".debug_frame", [elf, debug]):
        for file in files:
            try:
                section = _read(file, name) if file is not None else None
            except ElfError as error:
                sections.refused[f"{name}: {error}"] = 1
                continue
            if section is not None and section.data:
                sections.found.append(section)
                break
    return sections


def _read(elf: ElfFile, name: str) -> Section | None:
    section = _eh_frame(elf) if name == ".eh_frame" else _debug_frame(elf)
    if section is not None and section.vaddr >= _HIGHEST:
        raise ElfError("at an absurd address")
    return section


def _eh_frame(elf: ElfFile) -> Section | None:
    header = elf.section_header(b".eh_frame")
    frame_header = _frame_header(elf)
    if header is not None:
        section = Section(_content(elf, header), int(header["addr"]), True)
    elif frame_header is not None:
        found = _at(elf, frame_header.eh_frame)
        if found is None:
            return None
        section = found
    else:
        return None
    if frame_header is None or not len(frame_header.fdes) or section.vaddr >= _HIGHEST:
        return section
    return section._replace(hints=frame_header.fdes - section.vaddr)


def _described(elf: ElfFile) -> NDArray[np.uint64]:
    """Addresses where functions with a frame description begin, as far as .eh_frame_hdr tells."""
    import numpy as np

    header = _frame_header(elf)
    return header.functions.astype(np.uint64) if header is not None else np.zeros(0, np.uint64)


class _FrameHeader(NamedTuple):
    """.eh_frame_hdr, in the encodings that linkers use (Linux Standard Base 5, 10.6.2)."""

    eh_frame: int
    """Virtual address of .eh_frame."""
    fdes: NDArray[np.int64]
    """Virtual addresses of frame descriptions; empty when the header has no table of them."""
    functions: NDArray[np.int64]
    """Virtual addresses of the functions that they describe."""


def _frame_header(elf: ElfFile) -> _FrameHeader | None:
    import numpy as np

    for segment in elf.segments:
        if segment.type != _PT_GNU_EH_FRAME or segment.filesz < 12 or segment.vaddr >= 1 << 62:
            continue
        try:
            data = elf.source.read(segment.offset, min(segment.filesz, _MAX_SECTION))
        except ElfError:
            continue
        version, to_frame, of_count, of_table, offset, count = struct.unpack_from("<BBBBiI", data)
        if (version, to_frame) != (1, _SDATA4 | _PCREL):
            continue
        if (of_count, of_table) != (_UDATA4, _SDATA4 | _DATAREL) or 12 + 8 * count > len(data):
            count = 0
        pairs = np.frombuffer(data, "<i4", 2 * count, 12).astype(np.int64) + segment.vaddr
        return _FrameHeader(segment.vaddr + 4 + offset, pairs[1::2], pairs[0::2])
    return None


def _at(elf: ElfFile, vaddr: int) -> Section | None:
    """The section in a file without section headers: extends to the end of the loaded segment."""
    for s in elf.segments:
        if s.type == _PT_LOAD and s.vaddr <= vaddr < s.vaddr + s.filesz:
            size = min(s.vaddr + s.filesz - vaddr, _MAX_SECTION)
            return Section(elf.source.read(s.offset + vaddr - s.vaddr, size), vaddr, True, True)
    return None


def _debug_frame(elf: ElfFile) -> Section | None:
    header = elf.section_header(b".debug_frame")
    if header is not None:
        return Section(_content(elf, header), int(header["addr"]), False)
    header = elf.section_header(b".zdebug_frame")
    if header is None:
        return None
    data = _stored(elf, header)
    if len(data) < 12 or not data.startswith(_OLD_HEAD):
        raise ElfError("compressed in an unknown way")
    return Section(_unpack(data[12:]), int(header["addr"]), False)


def _content(elf: ElfFile, header: NDArray[np.void]) -> bytes:
    data = _stored(elf, header)
    if not int(header["flags"]) & _SHF_COMPRESSED:
        return data
    kind = _CHDR.unpack_from(data)[0] if len(data) >= _CHDR.size else 0
    if kind == _ELFCOMPRESS_ZSTD:
        raise ElfError("compressed by zstd")
    if kind != _ELFCOMPRESS_ZLIB:
        raise ElfError("compressed in an unknown way")
    return _unpack(data[_CHDR.size :])


def _stored(elf: ElfFile, header: NDArray[np.void]) -> bytes:
    if int(header["size"]) > _MAX_SECTION:
        raise ElfError("too large")
    return elf.source.read(int(header["offset"]), int(header["size"]))


def _unpack(packed: bytes) -> bytes:
    try:
        unpacked = zlib.decompressobj()
        content = unpacked.decompress(packed, _MAX_SECTION)
    except zlib.error as error:
        raise ElfError("damaged compression") from error
    if not unpacked.eof:
        raise ElfError("too large, or cut short")
    return content
