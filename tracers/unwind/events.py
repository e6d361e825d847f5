"""The effect of many functions' instructions on the rules that a walk needs, as parallel arrays."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from . import instructions as ins
from .leb import LIMIT, leb_sizes, lebs
from .rules import (
    EXPRESSION,
    OFFSET,
    REG_RA,
    REG_RBP,
    REG_RSP,
    REGISTER,
    SAME,
    UNDEFINED,
    VAL_EXPRESSION,
    VAL_OFFSET,
    pack_rule,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CFA_REGISTER, CFA_OFFSET, RULE_RBP, RULE_RSP, RULE_RA = range(5)
"""Rules that an event can change: the column of a state, and the bit number in `Events.changes`."""
COLUMNS = 5
_CFA = 1 << CFA_REGISTER | 1 << CFA_OFFSET
START = (1 << COLUMNS) - 1
REMEMBER, RECALL = 1 << COLUMNS, 2 << COLUMNS

BY_EXPRESSION = -1
"""The CFA's register when the CFA is an expression; its offset is then the expression's place in the section."""


class _RuleOp(NamedTuple):
    kind: int
    signed: bool
    scaled: int
    """Factor by which the data alignment scales the operand; 0: the operand is no offset."""


_RULES = {
    0x05: _RuleOp(OFFSET, False, 1),  # offset_extended
    0x07: _RuleOp(UNDEFINED, False, 0),
    0x08: _RuleOp(SAME, False, 0),
    0x09: _RuleOp(REGISTER, False, 0),
    0x10: _RuleOp(EXPRESSION, False, 0),
    0x11: _RuleOp(OFFSET, True, 1),  # offset_extended_sf
    0x14: _RuleOp(VAL_OFFSET, False, 1),
    0x15: _RuleOp(VAL_OFFSET, True, 1),  # val_offset_sf
    0x16: _RuleOp(VAL_EXPRESSION, False, 0),
    0x2F: _RuleOp(OFFSET, False, -1),  # GNU_negative_offset_extended
}
_COLUMN_OF = {REG_RBP: RULE_RBP, REG_RSP: RULE_RSP, REG_RA: RULE_RA}


class Programs(NamedTuple):
    """Instructions of functions, one row each, sorted by position, with at least one byte between them."""

    octets: NDArray[np.uint8]
    """Bytes of the section."""
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    pc: NDArray[np.uint64]
    """The function's first address."""
    code_align: NDArray[np.int64]
    data_align: NDArray[np.int64]
    initial: NDArray[np.int64]
    """The initial rules from its CIE: `COLUMNS` numbers per program, see `Events`."""


class Addresses(NamedTuple):
    """Encoding of an address by DW_CFA_set_loc."""

    width: int
    signed: bool
    relative_to: int | None
    """Virtual address of the section if addresses are relative to their own place."""


class Events(NamedTuple):
    """Changes of the rules, in order; each program's first is preceded by a `START`."""

    program: NDArray[np.int64]
    location: NDArray[np.int64]
    """Bytes from the function's start; up to `leb.LIMIT` and beyond if the instructions are nonsense."""
    changes: NDArray[np.uint8]
    """`START`, `REMEMBER`, `RECALL`, or bits of columns."""
    register: NDArray[np.int64]
    """The new `CFA_REGISTER`."""
    number: NDArray[np.int64]
    """The other new value: the CFA's offset in bytes, or a rule as packed by `rules.pack_rule`."""
    damaged: NDArray[np.bool_]
    """Whether each program's instructions make no sense, and its only event is its `START`."""


def read_events(programs: Programs, addresses: Addresses) -> Events:
    """The events of ``programs``, which must not be empty."""
    import numpy as np

    base = int(programs.begin[0]) - 1
    size = int(programs.end[-1]) - base
    part = np.zeros(size + ins.PADDING, np.uint8)
    part[:size] = programs.octets[base : base + size]
    marks, damaged = ins.find_instructions(part, programs.begin - base, programs.end - base, addresses.width)
    at = np.flatnonzero(marks)
    is_start = marks[at] == ins.START
    op = np.where(is_start, np.uint8(ins.NOP), part[at])
    found = _Found(part, base, at, op, np.cumsum(is_start) - 1)
    location = _locate(found, programs, addresses, damaged)
    which = np.flatnonzero(_matters()[op] & ~damaged[found.program] | is_start)
    found = _Found(part, base, at[which], op[which], found.program[which])
    changes, register, number = _Reader(found, programs).read()
    at_start = is_start[which]
    changes[at_start] = START
    register[at_start] = programs.initial[:, CFA_REGISTER]
    number[at_start] = programs.initial[:, CFA_OFFSET]
    known = np.flatnonzero(changes)
    columns = (found.program[known], location[which[known]], changes[known], register[known], number[known])
    return Events(*columns, damaged)


class _Found(NamedTuple):
    """Instructions; a nop stands for the byte before each program."""

    part: NDArray[np.uint8]
    base: int
    """Begin of ``part`` in the section."""
    at: NDArray[np.int64]
    op: NDArray[np.uint8]
    program: NDArray[np.int64]


@cache
def _matters() -> NDArray[np.bool_]:
    """True for each opcode that may change a rule that a walk needs."""
    import numpy as np

    op = np.arange(256)
    matters: NDArray[np.bool_] = np.isin(op, [*ins.LAYOUTS, ins.REMEMBER_STATE, ins.RESTORE_STATE])
    matters[ins.GNU_ARGS_SIZE] = False
    return matters | (op >= ins.OFFSET_IN) & np.isin(op & 0x3F, list(_COLUMN_OF))


def _locate(found: _Found, programs: Programs, addresses: Addresses, damaged: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Bytes from the function's start after each instruction; marks programs that go backwards as ``damaged``."""
    import numpy as np

    step = np.where(found.op & 0xC0 == ins.ADVANCE, found.op & 0x3F, 0).astype(np.int64)
    for code, width in ins.ADVANCES.items():
        which = np.flatnonzero(found.op == code)
        step[which] = _gather(found.part, found.at[which] + 1, width, False)
    if (programs.code_align != 1).any():
        step = np.minimum(step * programs.code_align[found.program], LIMIT)
    reached = np.cumsum(step)
    starts = np.searchsorted(found.program, np.arange(len(programs.begin)))
    location: NDArray[np.int64] = reached - reached[starts][found.program]
    jumps = np.flatnonzero((found.op == ins.SET_LOC) & ~damaged[found.program])
    if len(jumps):
        place = found.at[jumps] + 1
        target = _gather(found.part, place, addresses.width, addresses.signed).view(np.uint64)
        if addresses.relative_to is not None:
            target = target + (place + found.base).astype(np.uint64) + np.uint64(addresses.relative_to)
        distance = np.minimum(target - programs.pc[found.program[jumps]], np.uint64(LIMIT)).astype(np.int64)
        ahead = np.zeros(len(location), np.int64)
        ahead[jumps] = distance - location[jumps]
        last = np.zeros(len(location), np.int64)
        last[jumps], last[starts] = jumps, starts
        location = location + ahead[np.maximum.accumulate(last)]
        backwards = (np.diff(location) < 0) & (np.diff(found.program) == 0)
        damaged[found.program[1:][backwards]] = True
        damaged[found.program[jumps[distance == LIMIT]]] = True
    return location


def _gather(part: NDArray[np.uint8], at: NDArray[np.int64], width: int, signed: bool) -> NDArray[np.int64]:
    """Numbers of ``width`` bytes at arbitrary offsets."""
    import numpy as np

    dtype = np.dtype(f"<{'i' if signed else 'u'}{width}")
    view: NDArray[np.void] = np.ndarray((len(part) - width + 1,), dtype, part, strides=(1,))
    return view[at].astype(np.int64)


class _Reader:
    """Reads operands. ``changes`` stays 0 for an unusable instruction."""

    def __init__(self, found: _Found, programs: Programs) -> None:
        import numpy as np

        self._found, self._programs = found, programs
        self._first = lebs(found.part, found.at + 1, False)
        self._changes = np.zeros(len(found.at), np.uint8)
        self._register = np.zeros(len(found.at), np.int64)
        self._number = np.zeros(len(found.at), np.int64)

    def read(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """(changes, register, number) as in `Events`."""
        op = self._found.op
        self._changes[op == ins.REMEMBER_STATE] = REMEMBER
        self._changes[op == ins.RESTORE_STATE] = RECALL
        self._read_cfa()
        self._read_rules()
        self._read_restores()
        return self._changes, self._register, self._number

    def _read_cfa(self) -> None:
        import numpy as np

        op, at, first = self._found.op, self._found.at, self._first
        which = np.flatnonzero(op == ins.DEF_CFA_OFFSET)
        self._changes[which], self._number[which] = 1 << CFA_OFFSET, first[which]
        which = np.flatnonzero(op == ins.DEF_CFA_OFFSET_SF)
        offset = self._scaled(which, lebs(self._found.part, at[which] + 1, True))
        self._changes[which], self._number[which] = 1 << CFA_OFFSET, offset
        which = np.flatnonzero(op == ins.DEF_CFA_REGISTER)
        self._changes[which], self._register[which] = 1 << CFA_REGISTER, first[which]
        which = np.flatnonzero(op == ins.DEF_CFA)
        self._changes[which], self._register[which] = _CFA, first[which]
        self._number[which] = self._second(which, False)
        which = np.flatnonzero(op == ins.DEF_CFA_SF)
        self._changes[which], self._register[which] = _CFA, first[which]
        self._number[which] = self._scaled(which, self._second(which, True))
        which = np.flatnonzero(op == ins.DEF_CFA_EXPRESSION)
        self._changes[which], self._register[which] = _CFA, BY_EXPRESSION
        self._number[which] = at[which] + 1 + self._found.base

    def _read_rules(self) -> None:
        import numpy as np

        op, first = self._found.op, self._first
        which = np.flatnonzero(op & 0xC0 == ins.OFFSET_IN)
        self._set_rule(which, op[which] & 0x3F, pack_rule(OFFSET) + (self._scaled(which, first[which]) << 3))
        for code, (kind, signed, scaled) in _RULES.items():
            which = np.flatnonzero(op == code)
            if not len(which):
                continue
            operand = np.zeros(len(which), np.int64)
            if ins.LAYOUTS[code] == ins.ONE_BLOCK:
                operand = self._behind_first(which) + self._found.base
            elif ins.LAYOUTS[code] == ins.TWO:
                operand = self._second(which, signed)
            if scaled:
                operand = self._scaled(which, operand) * scaled
            self._set_rule(which, first[which], pack_rule(kind) + (operand << 3))

    def _read_restores(self) -> None:
        import numpy as np

        op, initial = self._found.op, self._programs.initial
        extended = op == ins.RESTORE_EXTENDED
        for register, column in _COLUMN_OF.items():
            which = np.flatnonzero((op == ins.RESTORE | register) | extended & (self._first == register))
            self._changes[which] = 1 << column
            self._number[which] = initial[self._found.program[which], column]

    def _set_rule(self, which: NDArray[np.int64], register: NDArray[np.int64], rule: NDArray[np.int64]) -> None:
        self._number[which] = rule
        for number, column in _COLUMN_OF.items():
            self._changes[which[register == number]] = 1 << column

    def _scaled(self, which: NDArray[np.int64], operand: NDArray[np.int64]) -> NDArray[np.int64]:
        import numpy as np

        align = self._programs.data_align[self._found.program[which]]
        scaled: NDArray[np.int64] = np.clip(operand * align, -LIMIT, LIMIT)
        return scaled

    def _behind_first(self, which: NDArray[np.int64]) -> NDArray[np.int64]:
        place = self._found.at[which] + 1
        return place + leb_sizes(self._found.part, place)

    def _second(self, which: NDArray[np.int64], signed: bool) -> NDArray[np.int64]:
        return lebs(self._found.part, self._behind_first(which), signed)
