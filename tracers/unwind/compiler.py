"""Compiles an ELF file's call frame information into its table of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..images.elf import ElfFile
from .cfi import PE_ABSOLUTE, PE_SIZES, Cie, Frames
from .chain import Section
from .events import Addresses, Programs
from .functions import Functions, count, no_functions, read_functions
from .machine import BLANK, run, run_initial
from .rows import DAMAGED, GAP, UNKNOWN, UnwindTable, count_reasons, merge, pack
from .rules import MAX_ODD, TooVariedError
from .sections import Sections, UnwindError, find_sections
from .undescribed import combine, find_more

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["UnwindError", "compile_sections", "compile_table", "find_sections"]

_BATCH = 1 << 18
"""Bytes of a section that are processed at once: few enough for the processor's cache."""
_MAX_PROGRAM = 1 << 20
"""Maximum size of one function's instructions, in bytes."""
_MAX_INITIAL = 1 << 16
"""Maximum size of a CIE's instructions, in bytes; also the bytes that are processed at once when CIEs are read."""
_MAX_ROWS = 1 << 23
_SPAN = 1 << 32
"""Range of a row's pc."""


class _Rows(NamedTuple):
    """Rows in any order."""

    pc: NDArray[np.uint32]
    """Virtual address less the table's base."""
    word: NDArray[np.uint32]


def compile_table(elf: ElfFile, debug: ElfFile | None = None) -> UnwindTable:
    """The unwind table of one executable or shared library; ``debug`` is its separate debug file.

    UnwindError when no table can be made.
    """
    return compile_sections(elf, find_sections(elf, debug))


def compile_sections(elf: ElfFile, sections: Sections) -> UnwindTable:
    """See `compile_table`; ``sections`` is the result of `find_sections`."""
    import numpy as np

    refused: Counter[str] = Counter()
    problem = ""
    try:
        functions = read_functions(elf, sections, refused)
    except UnwindError as error:
        functions, problem = no_functions(), str(error)
    more = find_more(elf, sections, functions.pc, functions.end, refused)
    if not len(functions.pc) and not more.rows:
        raise UnwindError(problem)
    first = min([*functions.pc[:1].tolist(), *(pc for pc, _ in more.rows[:1])])
    base = 0 if elf.code_end <= _SPAN else first & ~0xFFF
    near = functions.end - np.uint64(base) < _SPAN
    count(refused, "too far away", ~near)
    parts = _described_rows(functions.take(near), base)
    pcs, words = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(pcs, kind="stable")
    pcs, words = combine(pcs[order], words[order], more.within(base, base + _SPAN))
    rows = merge(pcs, words)
    refused.update(count_reasons(rows))
    return UnwindTable(base, rows, dict(refused))


def _described_rows(functions: Functions, base: int) -> list[_Rows]:
    import numpy as np

    parts, total = [_gaps(functions, base)], 0
    budget = [MAX_ODD]
    try:
        for number, (section, frames) in enumerate(functions.frames):
            which = np.sort(functions.frame[functions.section == number])
            for part in _run_section(section, frames, which, base, budget):
                parts.append(part)
                total += len(part.pc)
                if total > _MAX_ROWS:
                    raise UnwindError("absurdly many rows")
    except TooVariedError as error:
        raise UnwindError(str(error)) from error
    return parts


def _gaps(functions: Functions, base: int) -> _Rows:
    """Rows for the ends of functions that are not followed directly by another function."""
    import numpy as np

    last = np.ones(len(functions.pc), bool)  # of each group
    last[:-1] = functions.pc[1:] != functions.end[:-1]
    pcs = (functions.end[last] - np.uint64(base)).astype(np.uint32)
    return _Rows(pcs, np.full(len(pcs), pack(GAP), np.uint32))


def _run_section(
    section: Section, frames: Frames, which: NDArray[np.int64], base: int, budget: list[int]
) -> Iterator[_Rows]:
    """The rows of the frame descriptions ``which``, given in the section's order."""
    import numpy as np

    octets = np.frombuffer(section.data, np.uint8)
    initial, sound = _initial_rules(octets, frames.cies)
    fit = sound[frames.cie[which]] & (frames.end[which] - frames.begin[which] <= _MAX_PROGRAM)
    pcs = (frames.pc[which[~fit]] - np.uint64(base)).astype(np.uint32)
    yield _Rows(pcs, np.full(len(pcs), pack(UNKNOWN, DAMAGED), np.uint32))
    which = which[fit]
    encodings = np.array([cie.encoding for cie in frames.cies], np.int64)[frames.cie[which]]
    aligns = np.array([(cie.code_align, cie.data_align) for cie in frames.cies], np.int64).reshape(-1, 2)
    for encoding in np.flatnonzero(np.bincount(encodings)).tolist():
        addresses = _addresses(section, encoding)
        alike = which[encodings == encoding]
        for part in _batches(frames.begin[alike], frames.end[alike], _BATCH):
            batch = alike[part]
            cie = frames.cie[batch]
            columns = (frames.begin[batch], frames.end[batch], frames.pc[batch], *aligns[cie].T, initial[cie])
            rows = run(Programs(octets, *columns), addresses, budget)
            program = np.repeat(np.arange(len(batch)), rows.counts)
            near = rows.location < frames.size[batch][program].astype(np.int64)
            start = (frames.pc[batch] - np.uint64(base)).astype(np.int64)
            yield _Rows((start[program] + rows.location)[near].astype(np.uint32), rows.word[near])


def _addresses(section: Section, encoding: int) -> Addresses:
    width, signed = PE_SIZES[encoding & 0x0F]
    return Addresses(width, signed, None if encoding & 0x70 == PE_ABSOLUTE else section.vaddr)


def _initial_rules(octets: NDArray[np.uint8], cies: list[Cie]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(the initial rules of each CIE, whether they make sense)."""
    import numpy as np

    numbers: dict[tuple[int, bytes], int] = {}
    different: list[Cie] = []
    which = np.zeros(len(cies), np.int64)
    for i, cie in enumerate(cies):
        key = cie.data_align, octets[cie.begin : cie.end].tobytes()
        which[i] = numbers.setdefault(key, len(numbers))
        if len(different) < len(numbers):
            different.append(cie)
    initial, sound = np.tile(np.array(BLANK), (len(different), 1)), np.zeros(len(different), bool)
    begin = np.array([cie.begin for cie in different], np.int64)
    end = np.array([min(cie.end, cie.begin + _MAX_INITIAL) for cie in different], np.int64)
    align = np.array([cie.data_align for cie in different], np.int64)
    for part in _batches(begin, end, _MAX_INITIAL):
        pc, one = np.zeros(len(begin[part]), np.uint64), np.ones(len(begin[part]), np.int64)
        programs = Programs(octets, begin[part], end[part], pc, one, align[part], initial[part])
        initial[part], damaged = run_initial(programs)
        sound[part] = ~damaged
    return initial[which], sound[which]


def _batches(begin: NDArray[np.int64], end: NDArray[np.int64], span: int) -> Iterator[slice]:
    """Sorted ranges, in groups that span at most ``span`` bytes or consist of one range."""
    import numpy as np

    first = 0
    while first < len(begin):
        last = max(first + 1, int(np.searchsorted(end, begin[first] + span, "right")))
        yield slice(first, last)
        first = last
