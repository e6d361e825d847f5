"""The DWARF call frame virtual machine (DWARF 5, 6.4.2), as an automaton over instruction bytes.

A node stands for the rules in force (and those remembered) before an instruction, or for an instruction of which
some bytes are still to come. Compilers write the same few instructions over and over, so nearly each byte is one
look-up in a node that exists; the rest of the machine runs once per edge.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import NamedTuple

from .leb import LebError, sleb, uleb
from .rows import DAMAGED, UNKNOWN, pack
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
    Rule,
    State,
    encode,
)  # fmt: skip

_MAX_INSTRUCTION = 256
_MAX_DEPTH = 32
"""Of remembered rules."""
MAX_NODES = 300_000
"""About 150 MB. libLLVM-14 needs some 20,000."""
_DAMAGED_ROW = pack(UNKNOWN, DAMAGED)

_BLANK = State(-1, 0, b"", None, None, None)


class ProgramError(Exception):
    """Instructions that make no sense."""


class TooVariedError(Exception):
    """More different rules than any compiler writes: the whole file is to be refused."""


class _Node(dict[int, "_Node | int"]):
    """Next byte to the next node, or to how far the location advances (the next node is `base` then)."""

    __slots__ = ("base", "machine", "raw", "stack", "state", "word")

    def __init__(
        self, machine: Machine, state: State, stack: tuple[State, ...], base: _Node | None, raw: bytes
    ) -> None:
        super().__init__()
        machine.count_node()
        self.machine, self.state, self.stack, self.raw = machine, state, stack, raw
        self.base = self if base is None else base
        """Self, or the node before the instruction whose first bytes are `raw`."""
        self.word: int = encode(state) if base is None else base.word

    def __missing__(self, byte: int) -> _Node | int:
        step = self.machine.step(self, self.raw + bytes([byte]))
        self[byte] = step
        return step


class Machine:
    """Runs the programs that share one CIE.

    ``initial`` are the CIE's own instructions; ProgramError when they make no sense.
    """

    def __init__(self, code_align: int, data_align: int, initial: bytes, budget: list[int] | None = None) -> None:
        self._code_align, self._data_align = code_align, data_align
        self._nodes: dict[tuple[State, tuple[State, ...]], _Node] = {}
        self._budget = [MAX_NODES] if budget is None else budget
        self._initial = _BLANK
        node = self._node(_BLANK, ())
        for byte in initial:
            step = node[byte]
            if isinstance(step, int):
                raise ProgramError
            node = step
        if node.base is not node or node.stack:
            raise ProgramError
        self._initial = node.state
        self._nodes.clear()  # their edges know no initial rules
        self._start = self._node(node.state, ())

    def count_node(self) -> None:
        """TooVariedError when there are too many."""
        self._budget[0] -= 1
        if self._budget[0] < 0:
            raise TooVariedError

    def run(self, code: bytes, locations: array[int], words: array[int]) -> int:
        """Appends a program's rows: bytes from the function's start, and words as `rows.pack` makes them.

        Returns how many; those of a program that makes no sense are one, `UNKNOWN`.
        """
        before = len(locations)
        try:
            self._run(code, locations, words)
        except (ProgramError, OverflowError):
            del locations[before:], words[before:]
            locations.append(0)
            words.append(_DAMAGED_ROW)
        return len(locations) - before

    def _run(self, code: bytes, locations: array[int], words: array[int]) -> None:
        node: _Node = self._start
        location = 0
        last = -1
        for byte in code:
            step = node[byte]
            if step.__class__ is not int:
                node = step  # type: ignore[assignment]
                continue
            node = node.base
            if step:
                if node.word != last:
                    last = node.word
                    locations.append(location)
                    words.append(last)
                location += step
        if node.base is not node:
            raise ProgramError
        if node.word != last:
            locations.append(location)
            words.append(node.word)

    def step(self, node: _Node, raw: bytes) -> _Node | int:
        """Where ``raw``, an instruction or its first bytes, leads from ``node``."""
        try:
            return self._execute(node.base, raw)
        except LebError:
            if len(raw) >= _MAX_INSTRUCTION:
                raise ProgramError from None
            return _Node(self, node.state, node.stack, node.base, raw)

    def _node(self, state: State, stack: tuple[State, ...]) -> _Node:
        found = self._nodes.get((state, stack))
        if found is None:
            found = self._nodes[state, stack] = _Node(self, state, stack, None, b"")
        return found

    def _execute(self, node: _Node, raw: bytes) -> _Node | int:
        op = raw[0]
        high, low = op & 0xC0, op & 0x3F
        if high == 0x40 or op in _ADVANCES:
            return self._code_align * (low if high else _fixed(raw, _ADVANCES[op]))
        if op in (_REMEMBER, _RESTORE):
            return self._remember(node) if op == _REMEMBER else self._recall(node)
        return self._node(self._change(node.state, raw), node.stack)

    def _remember(self, node: _Node) -> _Node:
        if len(node.stack) >= _MAX_DEPTH:
            raise ProgramError
        return self._node(node.state, (*node.stack, node.state))

    def _recall(self, node: _Node) -> _Node:
        if not node.stack:
            raise ProgramError
        return self._node(node.stack[-1], node.stack[:-1])

    def _change(self, state: State, raw: bytes) -> State:
        op = raw[0]
        high, low = op & 0xC0, op & 0x3F
        if high == 0x80:
            return _set(state, low, (OFFSET, uleb(raw, 1)[0] * self._data_align))
        if high:
            return self._restore(state, low)
        if op in _IGNORED:
            if _IGNORED[op]:
                uleb(raw, 1)
            return state
        if op in _CFA:
            return _CFA[op](state, raw, self._data_align)
        register, at = uleb(raw, 1)
        if op == _RESTORE_EXTENDED:
            return self._restore(state, register)
        if op not in _RULES:
            raise ProgramError
        kind, read, scaled = _RULES[op]
        operand = read(raw, at)
        return _set(state, register, (kind, operand * self._data_align * scaled if scaled else operand))  # type: ignore

    def _restore(self, state: State, register: int) -> State:
        rule = {REG_RBP: self._initial.rbp, REG_RSP: self._initial.rsp, REG_RA: self._initial.ra}.get(register)
        return _set(state, register, rule)


def _set(state: State, register: int, rule: Rule | None) -> State:
    if register == REG_RBP:
        return state._replace(rbp=rule)
    if register == REG_RSP:
        return state._replace(rsp=rule)
    return state._replace(ra=rule) if register == REG_RA else state


def _fixed(raw: bytes, size: int) -> int:
    if len(raw) <= size:
        raise LebError
    return int.from_bytes(raw[1:], "little")


def _block(raw: bytes, at: int) -> bytes:
    size, at = uleb(raw, at)
    if size > _MAX_INSTRUCTION:
        raise ProgramError
    if len(raw) < at + size:
        raise LebError
    return raw[at:]


def _def_cfa(state: State, raw: bytes, data_align: int) -> State:
    register, at = uleb(raw, 1)
    offset = uleb(raw, at)[0] if raw[0] == 0x0C else sleb(raw, at)[0] * data_align
    return state._replace(register=register, offset=offset, expression=b"")


def _def_cfa_register(state: State, raw: bytes, data_align: int) -> State:
    del data_align
    return _plain(state)._replace(register=uleb(raw, 1)[0])


def _def_cfa_offset(state: State, raw: bytes, data_align: int) -> State:
    offset = uleb(raw, 1)[0] if raw[0] == 0x0E else sleb(raw, 1)[0] * data_align
    return _plain(state)._replace(offset=offset)


def _def_cfa_expression(state: State, raw: bytes, data_align: int) -> State:
    del data_align
    return state._replace(register=-1, offset=0, expression=_block(raw, 1))


def _plain(state: State) -> State:
    if state.register < 0:  # DWARF 5, 6.4.2.2: valid only where the CFA is a register and an offset
        raise ProgramError
    return state


class _RuleOp(NamedTuple):
    kind: int
    read: Callable[[bytes, int], int | bytes]
    """Operand at an offset of the instruction."""
    scaled: int
    """By how many data alignments it counts; 0: it is no offset."""


def _unsigned(raw: bytes, at: int) -> int:
    return uleb(raw, at)[0]


def _signed(raw: bytes, at: int) -> int:
    return sleb(raw, at)[0]


def _nothing(raw: bytes, at: int) -> int:
    del raw, at
    return 0


# DW_CFA_set_loc (0x01) is not here: its operand is an address, no compiler writes it and nothing could be shared.
_REMEMBER, _RESTORE, _RESTORE_EXTENDED = 0x0A, 0x0B, 0x06
_ADVANCES = {0x02: 1, 0x03: 2, 0x04: 4}
_IGNORED = {0x00: False, 0x2E: True}
"""nop and GNU_args_size; whether there is an operand."""
_CFA: dict[int, Callable[[State, bytes, int], State]] = {
    0x0C: _def_cfa, 0x0D: _def_cfa_register, 0x0E: _def_cfa_offset, 0x0F: _def_cfa_expression,
    0x12: _def_cfa, 0x13: _def_cfa_offset,
}  # fmt: skip
_RULES = {
    0x05: _RuleOp(OFFSET, _unsigned, 1),  # offset_extended
    0x07: _RuleOp(UNDEFINED, _nothing, 0),
    0x08: _RuleOp(SAME, _nothing, 0),
    0x09: _RuleOp(REGISTER, _unsigned, 0),
    0x10: _RuleOp(EXPRESSION, _block, 0),
    0x11: _RuleOp(OFFSET, _signed, 1),  # offset_extended_sf
    0x14: _RuleOp(VAL_OFFSET, _unsigned, 1),
    0x15: _RuleOp(VAL_OFFSET, _signed, 1),  # val_offset_sf
    0x16: _RuleOp(VAL_EXPRESSION, _block, 0),
    0x2F: _RuleOp(OFFSET, _unsigned, -1),  # GNU_negative_offset_extended
}
