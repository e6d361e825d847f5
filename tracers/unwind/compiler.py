"""From an ELF file's call frame information to its table of rows.

Each different program (instructions under one CIE) runs once; its rows are then laid out for all functions
that share it at once. Functions do not overlap in a table: where descriptions do, the first one wins, and
.eh_frame, which the program itself relies on, wins over .debug_frame.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from ..symbols.elf import ElfError, ElfFile
from .cfi import CfiError, Frames, Section, read_frames
from .program import MAX_NODES, Machine, ProgramError, TooVariedError
from .rows import DAMAGED, GAP, ROW, UNKNOWN, UnwindTable, count_reasons, merge, pack
from .rules import MACHINE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PT_LOAD, _PT_GNU_EH_FRAME, _PF_X = 1, 0x6474E550, 1
_SHF_COMPRESSED, _ELFCOMPRESS_ZLIB = 0x800, 1
_MAX_SECTION = 64 << 20
_MAX_INSTRUCTIONS = 32 << 20
"""Bytes of different programs."""
_MAX_ROWS = 1 << 23
_SPAN = 1 << 32
"""Of what a row's pc can say."""


class UnwindError(Exception):
    """A file without a table, and why: its frames are to be walked by frame pointers."""


class Program(NamedTuple):
    """Rows of the programs of a file, one after the other."""

    locations: NDArray[np.uint32]
    """Bytes from a function's start."""
    words: NDArray[np.uint32]
    first: NDArray[np.int64]
    """Per program, its first row …"""
    counts: NDArray[np.int64]
    """… and how many it has."""


class _Functions(NamedTuple):
    pc: NDArray[np.uint64]
    end: NDArray[np.uint64]
    program: NDArray[np.int64]

    def take(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> _Functions:
        return _Functions(self.pc[which], self.end[which], self.program[which])


def find_sections(elf: ElfFile, debug: ElfFile | None = None) -> list[Section]:
    """Sections of frame records, the one to believe first; .debug_frame from the separate debug file if not in ``elf``.

    UnwindError when the file is of another machine or cannot be read.
    """
    if elf.machine != MACHINE or not elf.is_64:
        raise UnwindError(f"no unwind rules for ELF machine {elf.machine}, {64 if elf.is_64 else 32} bits")
    try:
        found = [_eh_frame(elf), _debug_frame(elf) or (_debug_frame(debug) if debug else None)]
    except ElfError as error:
        raise UnwindError(str(error)) from error
    return [section for section in found if section]


def compile_table(elf: ElfFile, debug: ElfFile | None = None) -> UnwindTable:
    """The unwind table of one executable or shared library; ``debug`` is its separate debug file.

    UnwindError when there is none to be had.
    """
    return compile_sections(elf, find_sections(elf, debug))


def compile_sections(elf: ElfFile, sections: list[Section]) -> UnwindTable:
    """See `compile_table`; ``sections`` as `find_sections` returned them."""
    import numpy as np

    if not sections:
        raise UnwindError("neither .eh_frame nor .debug_frame")
    refused: Counter[str] = Counter()
    try:
        functions, programs = _read_functions(elf, sections, refused)
    except (CfiError, TooVariedError) as error:
        raise UnwindError(str(error) or "too many different rules") from error
    if not len(functions.pc):
        raise UnwindError("no frame description that can be used")
    base = 0 if elf.code_end <= _SPAN else int(functions.pc[0]) & ~0xFFF
    near = functions.end - np.uint64(base) < _SPAN
    _count(refused, "too far away", ~near)
    functions = functions.take(near)
    if int(programs.counts[functions.program].sum()) > _MAX_ROWS - 2 * len(functions.pc):
        raise UnwindError("absurdly many rows")
    rows = _lay_out(functions, programs, base)
    refused.update(count_reasons(rows))
    return UnwindTable(base, rows, dict(refused))


def _eh_frame(elf: ElfFile) -> Section | None:
    header = elf.section_header(b".eh_frame")
    if header is not None:
        return Section(_content(elf, header), int(header["addr"]), True)
    for segment in elf.segments:
        if segment.type == _PT_GNU_EH_FRAME and segment.filesz >= 8:
            version, encoding, _, _, offset = struct.unpack("<BBBBi", elf.source.read(segment.offset, 8))
            if (version, encoding) == (1, 0x1B):  # sdata4, relative to itself: what linkers write
                return _eh_frame_at(elf, segment.vaddr + 4 + offset)
    return None


def _eh_frame_at(elf: ElfFile, vaddr: int) -> Section | None:
    for s in elf.segments:
        if s.type == _PT_LOAD and s.vaddr <= vaddr < s.vaddr + s.filesz:
            size = min(s.vaddr + s.filesz - vaddr, _MAX_SECTION)
            return Section(elf.source.read(s.offset + vaddr - s.vaddr, size), vaddr, True, True)
    return None


def _debug_frame(elf: ElfFile) -> Section | None:
    header = elf.section_header(b".debug_frame")
    return None if header is None else Section(_content(elf, header), int(header["addr"]), False)


def _content(elf: ElfFile, header: NDArray[np.void]) -> bytes:
    size = int(header["size"])
    if size > _MAX_SECTION:
        raise ElfError("frame section too large")
    data = elf.source.read(int(header["offset"]), size)
    if not int(header["flags"]) & _SHF_COMPRESSED:
        return data
    if len(data) < 24 or data[:4] != struct.pack("<I", _ELFCOMPRESS_ZLIB):  # Elf64_Chdr, elf(5)
        raise ElfError("frame section compressed in an unknown way")
    try:
        unpacked = zlib.decompressobj()
        content = unpacked.decompress(data[24:], _MAX_SECTION)
    except zlib.error as error:
        raise ElfError("damaged compressed frame section") from error
    if not unpacked.eof:
        raise ElfError("frame section too large, or cut short")
    return content


def _read_functions(elf: ElfFile, sections: list[Section], refused: Counter[str]) -> tuple[_Functions, Program]:
    """Functions of all sections, sorted and without overlaps, and the programs that they index."""
    import numpy as np

    functions = _Functions(np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0, np.int64))
    runner = _Runner()
    for section in sections:
        frames = read_frames(section)
        refused.update(frames.refused)
        inside = _in_code(elf, frames)
        _count(refused, "outside of the code", ~inside)
        end = frames.pc + frames.size
        free = inside & ~_overlaps(functions, frames.pc, end)
        _count(refused, "described before", inside & ~free)
        at = np.flatnonzero(free)
        at = at[np.argsort(frames.pc[at], kind="stable")]
        reached = np.maximum.accumulate(end[at])
        first = np.ones(len(at), bool)
        first[1:] = frames.pc[at[1:]] >= reached[:-1]
        _count(refused, "described before", ~first)
        at = at[first]
        functions = _Functions(
            np.concatenate([functions.pc, frames.pc[at]]),
            np.concatenate([functions.end, end[at]]),
            np.concatenate([functions.program, runner.number(section.data, frames, at)]),
        )
        functions = functions.take(np.argsort(functions.pc, kind="stable"))
    return functions, runner.programs()


def _count(refused: Counter[str], reason: str, which: NDArray[np.bool_]) -> None:
    count = int(which.sum())
    if count:
        refused[reason] += count


def _in_code(elf: ElfFile, frames: Frames) -> NDArray[np.bool_]:
    """FDEs of functions that the linker threw away still stand there, at or near address 0."""
    import numpy as np

    inside = np.zeros(len(frames.pc), bool)
    end = frames.pc + frames.size
    for s in elf.segments:
        if s.type == _PT_LOAD and s.flags & _PF_X and s.vaddr + s.memsz < 1 << 64:
            inside |= (frames.pc >= np.uint64(s.vaddr)) & (end <= np.uint64(s.vaddr + s.memsz))
    return inside


def _overlaps(functions: _Functions, pc: NDArray[np.uint64], end: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which ranges meet a function; these are sorted and do not overlap."""
    import numpy as np

    if not len(functions.pc):
        return np.zeros(len(pc), bool)
    at = np.searchsorted(functions.end, pc, "right")
    behind = at == len(functions.pc)
    met: NDArray[np.bool_] = ~behind & (functions.pc[np.where(behind, 0, at)] < end)
    return met


class _Runner:
    """Numbers the different programs and runs each once."""

    def __init__(self) -> None:
        self._locations, self._words, self._count = array("I"), array("I"), array("q")
        self._budget = [MAX_NODES]
        self._bytes = 0

    def number(self, data: bytes, frames: Frames, which: NDArray[np.int64]) -> NDArray[np.int64]:
        """The program of each of the FDEs ``which``."""
        import numpy as np

        machines = [self._machine(frames, i) for i in range(len(frames.cies))]
        seen: list[dict[bytes, int]] = [{} for _ in frames.cies]
        numbers = np.empty(len(which), np.int64)
        columns = (frames.cie[which].tolist(), frames.begin[which].tolist(), frames.end[which].tolist())
        for i, (cie, begin, end) in enumerate(zip(*columns, strict=True)):
            code = data[begin:end]
            number = seen[cie].get(code)
            if number is None:
                number = seen[cie][code] = self._run(machines[cie], code)
            numbers[i] = number
        return numbers

    def programs(self) -> Program:
        """The rows of all programs so far."""
        import numpy as np

        count = np.frombuffer(self._count, np.int64) if self._count else np.zeros(0, np.int64)
        first = np.cumsum(count) - count
        locations, words = (np.array(column, np.uint32) for column in (self._locations, self._words))
        return Program(locations, words, first, count)

    def _machine(self, frames: Frames, index: int) -> Machine | None:
        cie = frames.cies[index]
        try:
            return Machine(cie.code_align, cie.data_align, cie.initial, self._budget)
        except ProgramError:
            return None

    def _run(self, machine: Machine | None, code: bytes) -> int:
        self._bytes += len(code)
        if self._bytes > _MAX_INSTRUCTIONS:
            raise CfiError("absurdly many instructions")
        if machine is None:
            self._locations.append(0)
            self._words.append(pack(UNKNOWN, DAMAGED))
            self._count.append(1)
        else:
            self._count.append(machine.run(code, self._locations, self._words))
        return len(self._count) - 1


def _lay_out(functions: _Functions, programs: Program, base: int) -> NDArray[np.void]:
    """The rows of all functions, and gaps behind those that no other follows at once."""
    import numpy as np

    if not len(functions.pc):
        return np.zeros(0, ROW)
    start = (functions.pc - np.uint64(base)).astype(np.uint32)
    end = (functions.end - np.uint64(base)).astype(np.uint32)
    gap = np.ones(len(start), bool)
    gap[:-1] = start[1:] != end[:-1]
    count = programs.counts[functions.program]
    first = np.cumsum(count + gap) - (count + gap)
    total = int((count + gap).sum())
    pcs, words = np.empty(total, np.uint32), np.empty(total, np.uint32)
    within = np.ones(total, bool)
    rank = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    source = np.repeat(programs.first[functions.program], count) + rank
    target = np.repeat(first, count) + rank
    location = programs.locations[source]
    pcs[target] = np.repeat(start, count) + location
    words[target] = programs.words[source]
    within[target] = location < np.repeat(end - start, count)
    closing = (first + count)[gap]
    pcs[closing], words[closing] = end[gap], pack(GAP)
    return merge(pcs[within], words[within])
