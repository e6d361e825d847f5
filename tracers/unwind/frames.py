"""Effect of an instruction on a frame: where its caller's frame is, after it.

A function begins with its return address at rsp (System V ABI for x86-64, 3.2). Of its instructions only those count
that move rsp, or save, set or restore rbp.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .rows import (
    CFA_EXPRESSION,
    END,
    RBP,
    RBP_AT_CFA,
    RBP_SAME,
    RBP_UNKNOWN,
    RSP,
    UNKNOWN,
    WORD,
    fits_cfa,
    fits_rbp,
    pack,
)

Instruction = tuple[int, int, str, str]
"""(address, size, mnemonic, operands), as capstone's disasm_lite() gives them."""

SAME, LOST, NOBODYS = "same", "lost", "nobody's"
"""Content of rbp, if not a place in the frame: the caller's value; anything; zero, which marks the outermost frame."""
_RSP = frozenset({"rsp", "esp", "sp", "spl"})
_RBP = frozenset({"rbp", "ebp", "bp", "bpl"})
_READS_ONLY = frozenset({"cmp", "test", "bt", "push", "jmp", "call", "nop"})
_SWAPS = frozenset({"xchg", "xadd", "cmpxchg", "mulx"})
_NOT_FOLLOWED = frozenset(
    {"enter", "iret", "iretd", "iretq", "retf", "retfq", "sysret", "sysretq", "pushf", "popf", "lcall", "ljmp"}
)


_WORDS = frozenset({"ax", "bx", "cx", "dx", "si", "di", "bp", "sp", "fs", "gs"})


class NotUnderstood(Exception):
    """Reason why a function has no rules."""


class State(NamedTuple):
    """A frame before an instruction. CFA: the value of rsp before the call of the function, as in DWARF."""

    depth: int | None = WORD
    """CFA - rsp; None: not known."""
    rbp: int | str = SAME
    """CFA - rbp, if rbp is a place in the frame, else what it has."""
    saved: int | None = None
    """The caller's rbp is the word at CFA - saved."""

    def row(self) -> int:
        """Row of this state, as packed by `rows.pack`."""
        if self.rbp == NOBODYS:
            return pack(END)
        if self.depth is not None and self.depth >= WORD:
            kind, offset = RSP, self.depth
        elif self.depth is None and isinstance(self.rbp, int):
            kind, offset = RBP, self.rbp
        else:
            return pack(UNKNOWN, CFA_EXPRESSION)
        if offset % WORD or not fits_cfa(offset // WORD):
            return pack(UNKNOWN, CFA_EXPRESSION)
        if self.rbp == SAME:
            return pack(kind | RBP_SAME << 4, offset // WORD)
        if self.saved is not None and not self.saved % WORD and fits_rbp(-self.saved // WORD):
            return pack(kind | RBP_AT_CFA << 4, offset // WORD, -self.saved // WORD)
        return pack(kind | RBP_UNKNOWN << 4, offset // WORD)


ENTRY = State()


def after(instruction: Instruction, state: State, *, system_called: bool) -> State:
    """The frame after an instruction. ``system_called``: the function has executed a system call.

    NotUnderstood where that cannot be known.
    """
    at, size, mnemonic, operands = instruction
    if state.rbp == NOBODYS:
        return state
    if mnemonic in _SIMPLE:
        return _SIMPLE[mnemonic](state, operands)
    if mnemonic == "call":  # the next instruction: it pushes its own address
        return _moved(state, WORD) if immediate(operands) == at + size else state
    if mnemonic in _NOT_FOLLOWED:
        raise NotUnderstood(f"an instruction that is not followed: {mnemonic}")
    first, _, rest = operands.partition(", ")
    if mnemonic == "xor" and first == rest and first in _RBP and state == ENTRY and system_called:
        return state._replace(rbp=NOBODYS)  # the child of clone()
    if mnemonic == "mov" and rest == "rbp":
        state = _stored(state, first)
    written = set() if mnemonic in _READS_ONLY else {first}
    if mnemonic.split(" ")[-1] in _SWAPS:
        written |= set(operands.split(", "))
    state = _stack_set(state, mnemonic, first, rest) if written & _RSP else state
    return _pointer_set(state, mnemonic, first, rest) if written & _RBP else state


def _stored(state: State, first: str) -> State:
    slot = offset(first, "qword ptr [rsp")
    if slot is None or state.rbp != SAME or state.depth is None:
        return state
    return state._replace(saved=state.depth - slot)


def _push(state: State, operands: str) -> State:
    if _is_16_bits(operands):
        raise NotUnderstood("a push of two bytes")
    grown = _moved(state, WORD)
    return grown._replace(saved=grown.depth) if operands == "rbp" and state.rbp == SAME else grown


def _pop(state: State, operands: str) -> State:
    if _is_16_bits(operands):
        raise NotUnderstood("a pop of two bytes")
    restored = state.depth is not None and state.saved == state.depth
    state = _moved(state, -WORD)
    if operands == "rbp":
        return state._replace(rbp=SAME if restored else LOST)
    return state._replace(depth=None) if operands == "rsp" else state


def _is_16_bits(operands: str) -> bool:
    return operands in _WORDS or (operands[:1] == "r" and operands[-1:] == "w") or operands.startswith("word ptr")


def _leave(state: State, _operands: str) -> State:
    if not isinstance(state.rbp, int):
        return State(None, LOST, None)
    return _pop(state._replace(depth=state.rbp), "rbp")


_SIMPLE: dict[str, Callable[[State, str], State]] = {
    "push": _push,
    "pop": _pop,
    "leave": _leave,
    "pushfq": lambda state, _: _moved(state, WORD),
    "popfq": lambda state, _: _moved(state, -WORD),
}


def _moved(state: State, size: int) -> State:
    """rsp has gone down by ``size`` bytes."""
    if state.depth is None:
        return state
    return _at_depth(state, state.depth + size)


def _at_depth(state: State, depth: int | None) -> State:
    """State at this depth of the stack: what was saved below rsp is gone."""
    freed = depth is not None and state.depth is not None and depth < state.depth
    gone = freed and state.saved is not None and depth is not None and state.saved > depth
    return State(depth, state.rbp, None if gone else state.saved)


def _stack_set(state: State, mnemonic: str, first: str, rest: str) -> State:
    number = immediate(rest)
    if first == "rsp":
        if mnemonic in ("sub", "add") and number is not None:
            number = number - (1 << 64) if number >= 1 << 63 else number
            return _moved(state, number if mnemonic == "sub" else -number)
        if mnemonic == "lea":
            own, frame = offset(rest, "[rsp"), offset(rest, "[rbp")
            if own is not None:
                return _moved(state, -own)
            if frame is not None and isinstance(state.rbp, int):
                return _at_depth(state, state.rbp - frame)
        if mnemonic == "mov" and rest == "rbp" and isinstance(state.rbp, int):
            return _at_depth(state, state.rbp)
    return state._replace(depth=None)


def _pointer_set(state: State, mnemonic: str, first: str, rest: str) -> State:
    depth = state.depth
    if first == "rbp" and depth is not None:
        if mnemonic == "mov" and rest == "rsp":
            return state._replace(rbp=depth)
        slot = offset(rest, "qword ptr [rsp")
        if mnemonic == "mov" and slot is not None and depth - slot == state.saved:
            return state._replace(rbp=SAME)
        place = offset(rest, "[rsp")
        if mnemonic == "lea" and place is not None:
            return state._replace(rbp=depth - place)
    return state._replace(rbp=LOST)


def offset(operand: str, base: str) -> int | None:
    """k of "[rsp + k]"; ``base`` is what the operand begins with, up to the register."""
    if not operand.startswith(base) or not operand.endswith("]"):
        return None
    middle = operand[len(base) : -1].replace(" ", "")
    if not middle:
        return 0
    return immediate(middle.removeprefix("+"))


def immediate(text: str) -> int | None:
    """A number; None for another operand."""
    try:
        return int(text, 0)
    except ValueError:
        return None
