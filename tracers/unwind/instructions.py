"""Finds call frame instructions (DWARF 5, 6.4.2 and 7.24) in bulk.

The size of an instruction is computed at every byte, as if one began there; then all programs are stepped through
at once, from instruction to instruction.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from .leb import MAX_BYTES, leb_sizes, lebs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PADDING = 64
"""Bytes required after the last program, because reads may go past its end."""
INSTRUCTION, START = 1, 2
"""Marks of the first byte of an instruction, and of the byte before a program."""

_FEW = 48
"""Number of programs up to which stepping through them one by one is faster."""
_MAX_BLOCK = 1 << 12
"""Maximum size of an expression, in bytes."""
_TOO_LONG = 1 << 28

ADVANCE, OFFSET_IN, RESTORE = 0x40, 0x80, 0xC0
"""Instructions with a number or register in the low six bits."""
NOP, SET_LOC, RESTORE_EXTENDED, REMEMBER_STATE, RESTORE_STATE = 0x00, 0x01, 0x06, 0x0A, 0x0B
ADVANCES = {0x02: 1, 0x03: 2, 0x04: 4}
"""Opcode to the operand's size in bytes."""
DEF_CFA, DEF_CFA_REGISTER, DEF_CFA_OFFSET, DEF_CFA_EXPRESSION = 0x0C, 0x0D, 0x0E, 0x0F
DEF_CFA_SF, DEF_CFA_OFFSET_SF = 0x12, 0x13
GNU_ARGS_SIZE = 0x2E

_PLAIN, ONE, TWO, BLOCK, ONE_BLOCK = range(5)
"""Operands: none in LEB128, one, two, an expression, one and an expression."""
LAYOUTS = {
    RESTORE_EXTENDED: ONE, 0x05: TWO, 0x07: ONE, 0x08: ONE, 0x09: TWO, 0x10: ONE_BLOCK, 0x11: TWO,
    DEF_CFA: TWO, DEF_CFA_REGISTER: ONE, DEF_CFA_OFFSET: ONE, DEF_CFA_EXPRESSION: BLOCK,
    DEF_CFA_SF: TWO, DEF_CFA_OFFSET_SF: ONE, 0x14: TWO, 0x15: TWO, 0x16: ONE_BLOCK, GNU_ARGS_SIZE: ONE, 0x2F: TWO,
}  # fmt: skip


class _Tables(NamedTuple):
    """Properties of an instruction, by opcode."""

    size: NDArray[np.int32]
    """Size in bytes if each LEB128 operand has one byte."""
    layout: NDArray[np.uint8]
    variable: NDArray[np.uint8]
    """2 if the size must be measured, 1 if only when the operand's first byte has its continuation bit set."""


def find_instructions(
    part: NDArray[np.uint8], begin: NDArray[np.int64], end: NDArray[np.int64], width: int
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """(`INSTRUCTION`, `START` or 0 per byte, which programs are damaged).

    Programs are sorted, with at least one byte between them, and ``part`` has `PADDING` after the last. ``width``: size
    of an address in bytes. Instructions already found in a damaged program stay marked.
    """
    import numpy as np

    size = _sizes(part, width)
    marks = np.zeros(int(end[-1]), np.uint8)
    marks[begin - 1] = START
    damaged = np.zeros(len(begin), bool)
    which = np.flatnonzero(begin < end)
    at, stop = begin[which], end[which]
    while len(at) > _FEW:
        marks[at] = INSTRUCTION
        at = at + size[at]
        going = at < stop
        if not going.all():
            damaged[which[at > stop]] = True
            at, stop, which = at[going], stop[going], which[going]
    for first, last, program in zip(at.tolist(), stop.tolist(), which.tolist(), strict=True):
        found, damaged[program] = _step_through(size[first:last].tolist())
        marks[first + np.array(found)] = INSTRUCTION
    return marks, damaged


def _step_through(sizes: list[int]) -> tuple[list[int], bool]:
    """(where the instructions of one program begin, whether the last one goes past the program's end)."""
    found, at = [], 0
    while at < len(sizes):
        found.append(at)
        at += sizes[at]
    return found, at > len(sizes)


def _sizes(part: NDArray[np.uint8], width: int) -> NDArray[np.int32]:
    """The size of an instruction at each byte; past any program's end where there can be none."""
    import numpy as np

    tables = _tables()
    size = tables.size[part]
    variable = tables.variable[part[:-1]]
    odd = np.flatnonzero(variable + (part[1:] >> 7) >= 2)
    odd = odd[(variable[odd] > 0) & (odd < len(part) - PADDING)]
    size[odd] = _measure(part, odd, tables.layout[part[odd]])
    size[part == SET_LOC] = 1 + width
    return size


def _measure(part: NDArray[np.uint8], at: NDArray[np.int64], layout: NDArray[np.uint8]) -> NDArray[np.int64]:
    import numpy as np

    size = np.ones(len(at), np.int64)
    sound = np.ones(len(at), bool)
    for layouts, is_block in ((ONE, TWO, ONE_BLOCK), False), ((TWO,), False), ((BLOCK, ONE_BLOCK), True):
        which = np.flatnonzero(np.isin(layout, layouts))
        place = at[which] + size[which]
        length = leb_sizes(part, place)
        sound[which] &= length <= MAX_BYTES
        size[which] += length
        if is_block:
            room = lebs(part, place, False)
            sound[which] &= room <= _MAX_BLOCK
            size[which] += np.minimum(room, _MAX_BLOCK)
    return np.where(sound, size, _TOO_LONG)


@cache
def _tables() -> _Tables:
    import numpy as np

    high = np.arange(256) & 0xC0
    layout = np.full(256, _PLAIN, np.uint8)
    layout[high == OFFSET_IN] = ONE
    for code, form in LAYOUTS.items():
        layout[code] = form
    size = np.where(high == 0, _TOO_LONG, 1).astype(np.int32)  # not known, except:
    size[[NOP, REMEMBER_STATE, RESTORE_STATE]] = 1
    for code, width in ADVANCES.items():
        size[code] = 1 + width
    size[layout == ONE] = 2
    variable = np.where(layout == ONE, 1, np.where(layout == _PLAIN, 0, 2)).astype(np.uint8)
    return _Tables(size, layout, variable)
