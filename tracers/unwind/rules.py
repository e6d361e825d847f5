"""Encodes DWARF call frame rules for x86-64 as rows, and recognises the expressions that a row can represent.

Support for another architecture would go here (and in the CFA kinds of rows.py): its register numbers, its `encode`.
Register numbers are those of the System V ABI, AMD64 supplement, figure 3.36; operations those of DWARF 5, 7.7.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .leb import MAX_BYTES, LebError, sleb, uleb
from .rows import (
    CFA_EXPRESSION,
    CFA_OFFSET,
    CFA_REGISTER,
    DEFINED,
    END,
    PLT,
    RA_ELSEWHERE,
    RBP,
    RBP_AT_CFA,
    RBP_AT_RBP,
    RBP_AT_RSP,
    RBP_DEREF,
    RBP_DEREF_8,
    RBP_ELSEWHERE,
    RBP_OFFSET,
    RBP_SAME,
    RBP_UNKNOWN,
    RSP,
    RSP_DEREF,
    RSP_DEREF_8,
    SIGNAL,
    SP_ELSEWHERE,
    UNKNOWN,
    WORD,
    fits_cfa,
    fits_rbp,
    pack,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MACHINE = 62
"""EM_X86_64."""
REG_RBP, REG_RSP, REG_RA = 6, 7, 16

UNDEFINED, SAME, OFFSET, VAL_OFFSET, REGISTER, EXPRESSION, VAL_EXPRESSION, NOT_TOLD = range(8)
Rule = tuple[int, int] | tuple[int, bytes]
"""(`UNDEFINED` … `VAL_EXPRESSION`, its offset in bytes, register or expression)."""

_FIT = 1 << 15 + 3
"""Larger than any offset in a row, in bytes."""
MAX_ODD = 1 << 17
"""Rules of a file that are encoded one by one; libcrypto, written in assembly, has some hundreds."""

_OP_DEREF, _OP_PLUS_UCONST, _OP_BREG0 = 0x06, 0x23, 0x70
_PLT_HEAD = bytes([0x77, 8, 0x80, 0, 0x3F, 0x1A])  # breg7 8, breg16 0, lit15, and
_PLT_TAIL = bytes([0x2A, 0x33, 0x24, 0x22])  # (lit N,) ge, lit3, shl, plus
_OP_LIT0 = 0x30

_BY_REGISTER = {REG_RSP: RSP, REG_RBP: RBP}
_DEREF = {
    (REG_RSP, 0): RSP_DEREF, (REG_RBP, 0): RBP_DEREF, (REG_RSP, 8): RSP_DEREF_8, (REG_RBP, 8): RBP_DEREF_8,
}  # fmt: skip
_AT_REGISTER = {REG_RSP: RBP_AT_RSP, REG_RBP: RBP_AT_RBP}


class State(NamedTuple):
    """The rules that matter for a row. None: not specified."""

    register: int
    """The CFA's register, -1 when it is an expression."""
    offset: int
    expression: bytes
    rbp: Rule | None
    rsp: Rule | None
    ra: Rule | None


class States(NamedTuple):
    """Many states, as parallel arrays."""

    register: NDArray[np.int64]
    offset: NDArray[np.int64]
    """Offset of the CFA; if the CFA is an expression (register -1): its place in the section, -1 for none."""
    rbp: NDArray[np.int64]
    """See `pack_rule`."""
    rsp: NDArray[np.int64]
    ra: NDArray[np.int64]


class TooVariedError(Exception):
    """More different rules than any compiler generates: the whole file is refused."""


class _Place(NamedTuple):
    """An expression of the form register + offset, optionally dereferenced, optionally plus a constant."""

    register: int
    offset: int
    deref: bool
    plus: int


def pack_rule(kind: int, operand: int = 0) -> int:
    """A rule as one number; ``operand`` is its offset in bytes, its register, or its expression's place."""
    return operand << 3 | kind


def encode_all(states: States, octets: NDArray[np.uint8], budget: list[int]) -> NDArray[np.uint32]:
    """`encode` for each state; ``octets`` is the section that contains the expressions.

    ``budget`` is the rest of `MAX_ODD`; TooVariedError when it is used up.
    """
    import numpy as np

    offset, rbp_offset = states.offset, states.rbp >> 3
    is_rbp, saved = states.register == REG_RBP, (states.rbp & 7) == OFFSET
    common = (is_rbp | (states.register == REG_RSP)) & (states.ra == pack_rule(OFFSET, -WORD))
    common &= (states.rsp == NOT_TOLD) & (offset % WORD == 0) & (offset >= -_FIT) & (offset < _FIT)
    common &= (states.rbp == NOT_TOLD) | (saved & (rbp_offset % WORD == 0))
    cfa, rbp = offset // WORD, np.where(saved, rbp_offset // WORD, 0)
    common &= (rbp >= -0x80) & (rbp <= 0x7F)
    rule = np.where(is_rbp, RBP, RSP) | np.where(saved, RBP_AT_CFA << 4, RBP_SAME << 4)
    words = (cfa & 0xFFFF | (rbp & 0xFF) << 16 | rule << 24).astype(np.uint32)
    odd = np.flatnonzero(~common)
    if len(odd):
        different, place = np.unique(np.stack([column[odd] for column in states]), axis=1, return_inverse=True)
        budget[0] -= different.shape[1]
        if budget[0] < 0:
            raise TooVariedError("too many different rules")
        made = [encode(_state(row, octets)) for row in different.T.tolist()]
        words[odd] = np.array(made, np.uint32)[place.reshape(-1)]
    return words


def _state(row: list[int], octets: NDArray[np.uint8]) -> State:
    register, offset, *rules = row
    expression = _expression(octets, offset) if register < 0 else b""
    return State(register, 0 if register < 0 else offset, expression, *(_rule(packed, octets) for packed in rules))


def _rule(packed: int, octets: NDArray[np.uint8]) -> Rule | None:
    kind, operand = packed & 7, packed >> 3
    if kind == NOT_TOLD:
        return None
    return (kind, _expression(octets, operand)) if kind in (EXPRESSION, VAL_EXPRESSION) else (kind, operand)


def _expression(octets: NDArray[np.uint8], at: int) -> bytes:
    """The block at ``at``: its size, then that many bytes."""
    if at < 0:
        return b""
    size, begin = uleb(octets[at : at + MAX_BYTES].tobytes(), 0)
    return octets[at + begin : at + begin + size].tobytes()


def encode(state: State) -> int:
    """A row's word (see `rows.pack`) for ``state``; `UNKNOWN` with its reason where a row cannot express it."""
    if state.ra is not None and state.ra[0] == UNDEFINED:
        return pack(END)
    if _is_signal(state):
        place = _parse(state.expression)
        assert place is not None
        return _with_rbp(SIGNAL, place.offset // WORD, state.rbp)
    if state.ra != (OFFSET, -WORD):
        return pack(UNKNOWN, RA_ELSEWHERE)
    if state.rsp is not None and state.rsp != (VAL_OFFSET, 0):
        return pack(UNKNOWN, SP_ELSEWHERE)
    return _by_expression(state) if state.register < 0 else _by_register(state)


def _by_register(state: State) -> int:
    if state.register not in _BY_REGISTER:
        return pack(UNKNOWN, CFA_REGISTER)
    return _at(_BY_REGISTER[state.register], state.offset, state.rbp)


def _at(kind: int, offset: int, rbp: Rule | None) -> int:
    if offset % WORD or not fits_cfa(offset // WORD):
        return pack(UNKNOWN, CFA_OFFSET)
    return _with_rbp(kind, offset // WORD, rbp)


def _by_expression(state: State) -> int:
    code = state.expression
    threshold = code[len(_PLT_HEAD)] - _OP_LIT0 if len(code) == len(_PLT_HEAD) + 1 + len(_PLT_TAIL) else -1
    if 0 <= threshold < 16 and code.startswith(_PLT_HEAD) and code.endswith(_PLT_TAIL):
        return _with_rbp(PLT, threshold, state.rbp)
    place = _parse(code)
    if place is None:
        return pack(UNKNOWN, CFA_EXPRESSION)
    if place.deref and (place.register, place.plus) in _DEREF:
        return _at(_DEREF[place.register, place.plus], place.offset, state.rbp)
    if not place.deref and place.register in _BY_REGISTER:
        return _at(_BY_REGISTER[place.register], place.offset + place.plus, state.rbp)
    return pack(UNKNOWN, CFA_EXPRESSION)


def _is_signal(state: State) -> bool:
    """Whether these are the rules of a struct sigcontext on the stack: rip is saved after rsp, all by expressions."""
    if state.register >= 0 or state.ra is None or state.ra[0] != EXPRESSION:
        return False
    cfa, ra = _parse(state.expression), _parse(state.ra[1])
    if cfa is None or not cfa.deref or cfa.plus or cfa.register != REG_RSP or cfa.offset % WORD:
        return False
    if state.rsp not in (None, (VAL_OFFSET, 0)):
        assert state.rsp is not None
        if state.rsp[0] != EXPRESSION or _parse(state.rsp[1]) != _Place(REG_RSP, cfa.offset, False, 0):
            return False
    return fits_cfa(cfa.offset // WORD) and ra == _Place(REG_RSP, cfa.offset + WORD, False, 0)


def _with_rbp(kind: int, cfa: int, rule: Rule | None) -> int:
    how, offset = _rbp(rule)
    return pack(kind | how << 4, cfa, offset)


def _rbp(rule: Rule | None) -> tuple[int, int]:
    if rule is None or rule[0] == SAME or rule == (REGISTER, REG_RBP):
        return RBP_SAME, 0
    if rule[0] == UNDEFINED:
        return RBP_UNKNOWN, DEFINED
    kind, offset = RBP_UNKNOWN, 0
    if rule[0] == OFFSET and isinstance(rule[1], int):
        kind, offset = RBP_AT_CFA, rule[1]
    elif rule[0] == EXPRESSION:
        place = _parse(rule[1])
        if place is not None and not place.deref and place.register in _AT_REGISTER:
            kind, offset = _AT_REGISTER[place.register], place.offset + place.plus
    if kind == RBP_UNKNOWN:
        return RBP_UNKNOWN, RBP_ELSEWHERE
    if offset % WORD or not fits_rbp(offset // WORD):
        return RBP_UNKNOWN, RBP_OFFSET
    return kind, offset // WORD


def _parse(code: int | bytes) -> _Place | None:
    if not isinstance(code, bytes) or not code or not _OP_BREG0 <= code[0] < _OP_BREG0 + 32:
        return None
    try:
        offset, at = sleb(code, 1)
        deref = code[at : at + 1] == bytes([_OP_DEREF])
        at += deref
        plus = 0
        if code[at : at + 1] == bytes([_OP_PLUS_UCONST]):
            plus, at = uleb(code, at + 1)
    except LebError:
        return None
    return _Place(code[0] - _OP_BREG0, offset, deref, plus) if at == len(code) else None
