"""Arguments of USDT probes: where the notes say that they are, as nodes.

``SIZE@OPERAND``: the size in bytes, negative if signed, and an operand in AT&T's form: a constant, a register, or
memory at ``displacement(base, index, scale)``. https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .check import NO_RETURN
from .nodes import REGISTERS, Calculate, Constant, Convert, Input, Load, Node, is_signed
from .types import I64, U64, Integer, Pointer, Type, Unreadable

MOST = 12
"""Arguments of a probe: <sys/sdt.h> has macros for as many."""
_ARGUMENT = re.compile(r"(?:(-?[1248])(f?)@)?(.+)", re.ASCII)
_CONSTANT = re.compile(r"\$(-?(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20}))", re.ASCII)
_MEMORY = re.compile(
    r"(-?(?:0[xX][0-9a-fA-F]{1,8}|[0-9]{1,10}))?\((%[a-z0-9]+)?(?:,(%[a-z0-9]+)(?:,([1248]))?)?\)", re.ASCII
)
_MASK = (1 << 64) - 1
_SHORT = ("ax", "bx", "cx", "dx", "si", "di", "bp", "sp")
_LONGEST = 40
"""Characters of an operand that are shown."""
_PARTS: Mapping[str, tuple[str, int, int]] = {
    **{name: (name, 64, 0) for name in REGISTERS},
    **{f"%e{name}": (f"%r{name}", 32, 0) for name in _SHORT},
    **{f"%{name}": (f"%r{name}", 16, 0) for name in _SHORT},
    **{f"%{name[0]}l": (f"%r{name}", 8, 0) for name in _SHORT[:4]},
    **{f"%{name[0]}h": (f"%r{name}", 8, 8) for name in _SHORT[:4]},
    **{f"%{name}l": (f"%r{name}", 8, 0) for name in _SHORT[4:]},
    **{f"%r{i}{end}": (f"%r{i}", bits, 0) for i in range(8, 16) for end, bits in (("d", 32), ("w", 16), ("b", 8))},
}
"""The 64-bit register that one is in, its bits, and by how many it is shifted."""


class _Odd(ValueError):
    """An operand cannot be read: completes "it is …"."""


def operand(text: str) -> Node:
    """The value of one argument; of a type `Unreadable` if it cannot be read."""
    try:
        return _operand(text)
    except _Odd as error:
        return Input(Unreadable(str(error)), "")


def _operand(text: str) -> Node:
    match = _ARGUMENT.fullmatch(text)
    if match is None:
        raise _Odd(_unknown(text))
    size, fraction, where = int(match[1] or 8), match[2], match[3]
    if fraction or where.startswith(("%xmm", "%ymm", "%zmm", "%st")):
        raise _Odd(f"in {_shown(where)}: BPF sees no registers of numbers with a fraction")
    kind = Integer(8 * abs(size), size < 0)
    if constant := _CONSTANT.fullmatch(where):
        # Converted, so that it is no constant of the user's.
        return Convert(kind, Constant(U64, _number(constant[1]) & _MASK))
    if where.startswith("%"):
        return Convert(kind, _register(where))
    memory = _MEMORY.fullmatch(where)
    if memory is None or not (memory[2] or memory[3]):
        raise _Odd(_unknown(where))
    return Load(kind, Convert(Pointer(kind), _address(*memory.groups())))


def _address(displacement: str | None, base: str | None, index: str | None, scale: str | None) -> Node:
    at: Node = Constant(U64, _number(displacement or "0") & _MASK)
    if base:
        at = Calculate(U64, "+", _register(base), at)
    if index:
        at = Calculate(U64, "+", at, Calculate(U64, "*", _register(index), Constant(U64, int(scale or 1))))
    return at


def _register(name: str) -> Node:
    if name not in _PARTS:
        raise _Odd(_unknown(name))
    whole, bits, shift = _PARTS[name]
    found: Node = Input(U64, whole)
    if shift:
        found = Calculate(U64, ">>", found, Constant(U64, shift))
    return Convert(Integer(bits, False), found) if bits < 64 else found


def _number(text: str) -> int:
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    return sign * int(digits, 16 if digits[:2].lower() == "0x" else 10)


def _unknown(text: str) -> str:
    return f"at {_shown(text)}, which is not a register, a constant or memory at a register"


def _shown(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def places(title: str, sites: Sequence[Sequence[str]]) -> list[dict[str, Node]]:
    """Meaning of ``arg1`` and so on at each of a probe's places, of which the arguments are given. What has not the
    same sign everywhere has one, so that the sum of its values is one number."""
    found = [[operand(text) for text in texts[:MOST]] for texts in sites]
    most = max(map(len, found), default=0)
    made: list[dict[str, Node]] = [dict(NO_RETURN) for _ in found]
    for i in range(most):
        given = [nodes[i] if i < len(nodes) else None for nodes in found]
        for names, node in zip(made, _alike(given), strict=True):
            names[f"arg{i + 1}"] = node
    for i in range(most, MOST):
        count = f"{most} argument{'' if most == 1 else 's'}" if most else "no arguments"
        for names in made:
            names[f"arg{i + 1}"] = Input(Unreadable(f"not there: {title} has {count}"), "")
    return made


def _alike(given: Sequence[Node | None]) -> list[Node]:
    """One argument at all places, with one sign."""
    there = [node for node in given if node is not None and not isinstance(node.type, Unreadable)]
    if len({is_signed(node) for node in there}) == 2:
        if any(node.type == U64 for node in there):
            return [
                Input(_odd("signed in one place of the probe, and has 64 bits without a sign in another"), "")
            ] * len(given)
        given = [node and (node if isinstance(node.type, Unreadable) else Convert(I64, node)) for node in given]
    return [Input(_odd("not in all places of the probe"), "") if node is None else node for node in given]


def _odd(why: str) -> Type:
    return Unreadable(why)
