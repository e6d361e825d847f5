"""Place where a CPython interpreter frees code objects, as its file has it: `tp_dealloc` of `PyCode_Type`.

A probe there is one for all who execute the file, so neither a process nor another file may choose the place. It is
taken from the initial data of the file itself, relocated as ld.so does it (System V ABI, 5.3 and 5.4; gABI's DT_RELR),
and has to be where a function begins by the file's unwind rules. Who can write the file can choose it, and can do
anything else to those who execute the file, too. Links and renaming do not matter: the probe is put on the open file
from which the place was read.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ..images.elf import ElfError, ElfFile
from ..unwind.functions import function_bounds
from ..unwind.sections import UnwindError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEALLOCATOR = 48
"""tp_dealloc of PyTypeObject (Include/cpython/object.h)."""
_LOAD, _DYNAMIC = 1, 2
_RELA, _RELASZ, _SYMTAB, _RELRSZ, _RELR = 7, 8, 6, 35, 36
"""DT_* of elf.h."""
_RELATIVE = {62: 8, 183: 1027}
"""R_X86_64_RELATIVE and R_AARCH64_RELATIVE, by e_machine."""
_ABSOLUTE = {62: 1, 183: 257}
"""R_X86_64_64 and R_AARCH64_ABS64."""
_ENTRY = [("offset", "<u8"), ("kind", "<u4"), ("symbol", "<u4"), ("addend", "<i8")]
"""Elf64_Rela."""
_SYMBOL = struct.Struct("<IBBHQQ")
_MAX_DYNAMIC = 1 << 16
_MAX_RELOCATIONS = 128 << 20
"""Bytes: the largest programs have some 30 MB."""
_PIECE = 24 << 18
_WORD = 8
_PER_BITMAP = 63


class Unproven(Exception):
    """Reason why the place is not known."""


def deallocator(elf: ElfFile, code_type: int) -> tuple[int, int]:
    """The virtual address and the file's offset of the function's first instruction; ``code_type``: virtual address of
    `PyCode_Type`. Unproven if the file does not say it, or if no function begins there."""
    if not code_type or elf.machine not in _RELATIVE:
        raise Unproven("the file does not say where they are freed")
    try:
        vaddr = initial_word(elf, code_type + DEALLOCATOR)
        is_code = bool(vaddr and elf.code_at(vaddr, 1))
        offset = elf.to_offset(vaddr) if is_code else None
        if offset is None:
            raise Unproven("the file does not say where they are freed")
        begins = function_bounds(elf)[0]
    except (ElfError, UnwindError):
        raise Unproven("the file does not say where they are freed") from None
    at = int(begins.searchsorted(vaddr))
    if at == len(begins) or int(begins[at]) != vaddr:
        raise Unproven("no function of the file begins where they are freed")
    return vaddr, offset


def initial_word(elf: ElfFile, vaddr: int) -> int:
    """The 8 bytes at a virtual address when the program begins, as a virtual address of the file. ElfError if they are
    not in it, or are those of another file's symbol."""
    if not 0 <= vaddr < 1 << 63:
        raise ElfError("not an address")
    (word,) = struct.unpack("<Q", elf.source.read(_place(elf, vaddr, _WORD), _WORD))
    tags = _dynamic(elf)
    found = _relocations(elf, tags, vaddr)
    if not found:
        return int(word)  # of a program at fixed addresses, or relocated by DT_RELR, which adds to what is there
    if len(found) > 1 or _is_relr(elf, tags, vaddr):
        raise ElfError("more than one relocation of a place")
    kind, symbol, addend = found[0]
    if kind == _RELATIVE[elf.machine] and not symbol:
        return addend % (1 << 64)
    if kind != _ABSOLUTE[elf.machine] or _SYMTAB not in tags:
        raise ElfError("a relocation of another kind")
    at = _place(elf, tags[_SYMTAB] + symbol * _SYMBOL.size, _SYMBOL.size)
    _, _, _, section, value, _ = _SYMBOL.unpack(elf.source.read(at, _SYMBOL.size))
    if not section:
        raise ElfError("another file's symbol")
    return int(value + addend) % (1 << 64)


def _place(elf: ElfFile, vaddr: int, size: int) -> int:
    """Offset in the file of so many bytes at a virtual address."""
    for s in elf.segments:
        if s.type == _LOAD and s.vaddr <= vaddr and vaddr + size <= s.vaddr + s.filesz:
            return s.offset + vaddr - s.vaddr
    raise ElfError("a variable outside of the file")


def _dynamic(elf: ElfFile) -> dict[int, int]:
    """Values of the dynamic section; empty for a program without one."""
    for s in elf.segments:
        if s.type == _DYNAMIC:
            data = elf.source.read(s.offset, min(s.filesz, _MAX_DYNAMIC) & -16)
            return dict(reversed(list(struct.iter_unpack("<QQ", data))))
    return {}


def _relocations(elf: ElfFile, tags: dict[int, int], vaddr: int) -> list[tuple[int, int, int]]:
    """Kind, symbol and addend of the first two relocations of a place in DT_RELA."""
    import numpy as np

    size = tags.get(_RELASZ, 0) if _RELA in tags else 0
    if size > _MAX_RELOCATIONS:
        raise ElfError("absurd relocations")
    found: list[tuple[int, int, int]] = []
    begin = _place(elf, tags[_RELA], size) if size else 0
    for at in range(0, size, _PIECE):
        piece = min(_PIECE, size - at) // 24 * 24
        rows = np.frombuffer(elf.source.read(begin + at, piece), np.dtype(_ENTRY))
        for row in rows[rows["offset"] == np.uint64(vaddr)][:2]:
            found.append((int(row["kind"]), int(row["symbol"]), int(row["addend"])))
    return found[:2]


def _is_relr(elf: ElfFile, tags: dict[int, int], vaddr: int) -> bool:
    """Whether DT_RELR relocates a place: an even word is an address, an odd one has a bit for each of the 63 next."""
    import numpy as np

    size = tags.get(_RELRSZ, 0) if _RELR in tags else 0
    if size > _MAX_RELOCATIONS:
        raise ElfError("absurd relocations")
    if not size:
        return False
    place = _place(elf, tags[_RELR], size & -_WORD)
    words: NDArray[np.uint64] = np.frombuffer(elf.source.read(place, size & -_WORD), "<u8")
    bases = np.flatnonzero(words & np.uint64(1) == 0)
    bitmaps = np.diff(np.append(bases, len(words))) - 1
    behind = np.uint64(vaddr) - words[bases]  # modulo 2^64
    number = (behind // np.uint64(_WORD)).astype(np.int64)
    near = (behind % np.uint64(_WORD) == 0) & (number <= bitmaps * _PER_BITMAP)
    if np.any(near & (number == 0)):
        return True
    bases, number = bases[near], number[near] - 1
    bits = words[bases + 1 + number // _PER_BITMAP] >> (number % _PER_BITMAP + 1).astype(np.uint64)
    return bool(np.any(bits & np.uint64(1)))
