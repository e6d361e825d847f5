"""C of one expression. Nothing of the user's text gets into it: names are of fixed tables, numbers are printed anew.

Each value is 64 bits in an unsigned integer, a signed one with its sign extended. What cannot be read, and a division
by 0, sets ``fault``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from . import nodes
from .check import COMM
from .nodes import Node, is_signed
from .types import Integer, Words

_REGISTERS = {"arg1": "di", "arg2": "si", "arg3": "dx", "arg4": "cx", "arg5": "r8", "arg6": "r9", "retval": "ax"}
"""Registers of the System V ABI: fields of struct pt_regs."""
_WORD = 8


def expression(node: Node) -> str:
    """A C expression of type u64. It uses ``ctx``, ``ids``, ``fault`` and, for `Saved`, ``saved``."""
    return _FORMS[type(node)](node)


def _constant(node: nodes.Constant) -> str:
    return f"{node.value & (1 << 64) - 1:#x}ULL"


def _load(node: nodes.Load) -> str:
    return f"load_{_width(node)}({expression(node.address)}, &fault)"


def _negated(node: nodes.Negate) -> str:
    operand = expression(node.operand)
    return {"-": f"(0 - {operand})", "~": f"(~{operand})", "!": f"((u64)!{operand})"}[node.sign]


def _both(node: nodes.Both) -> str:
    sign = {"&&": "&&", "||": "||"}[node.sign]
    return f"((u64)({expression(node.left)} {sign} {expression(node.right)}))"


def _saved(node: nodes.Saved) -> str:
    return f"saved_value(saved, {node.place:d}, &fault)"


def _input(node: nodes.Input) -> str:
    name = node.name
    if name == "pid":
        return "(ids >> 32)"
    if name == "tid":
        return "((u64)(u32)ids)"
    if name == nodes.DURATION:
        return "call_duration(ids)"
    if name == "sp":
        return "((u64)ctx->sp)"
    return f"((u64)ctx->{_REGISTERS.get(name) or nodes.REGISTERS[name]})"


def _field(node: nodes.Field) -> str:
    return f"field_{_width(node)}(ctx, {node.offset:d}, &fault)"


def _width(node: Node) -> str:
    if isinstance(node.type, Integer):
        return f"{'i' if node.type.signed else 'u'}{node.type.bits:d}"
    return "u64"


def _converted(node: nodes.Convert) -> str:
    operand, kind = expression(node.operand), node.type
    if not isinstance(kind, Integer) or kind.bits == 64:
        return operand
    return f"((u64)(s64)(s{kind.bits:d}){operand})" if kind.signed else f"((u64)(u{kind.bits:d}){operand})"


def _calculated(node: nodes.Calculate) -> str:
    left, right = expression(node.left), expression(node.right)
    if node.sign in ("/", "%"):
        name = {"/": "divided", "%": "rest"}[node.sign]
        return f"{name}{'_signed' if is_signed(node) else ''}({left}, {right}, &fault)"
    if node.sign in ("<<", ">>"):
        name = "left" if node.sign == "<<" else "right"
        return f"shifted_{name}{'_signed' if name == 'right' and is_signed(node) else ''}({left}, {right})"
    sign = {each: each for each in ("+", "-", "*", "&", "|", "^")}[node.sign]
    return f"({left} {sign} {right})"


def _compared(node: nodes.Compare) -> str:
    """Comparison of the numbers, whatever their types: -1 is less than 1 of an unsigned type."""
    sign = {each: each for each in ("==", "!=", "<", "<=", ">", ">=")}[node.sign]
    left, right = expression(node.left), expression(node.right)
    left_signed, right_signed = _compares_signed(node.left, node.right), _compares_signed(node.right, node.left)
    if left_signed == right_signed:
        kind = "s64" if left_signed else "u64"
        return f"((u64)(({kind}){left} {sign} ({kind}){right}))"
    # One of them has a sign: if it is negative, it is less than any of the other.
    less = "1" if sign in ("!=", "<", "<=") else "0"
    more = "1" if sign in ("!=", ">", ">=") else "0"
    if left_signed:
        return f"({{ u64 a = {left}, b = {right}; (s64)a < 0 ? {less}ULL : (u64)(a {sign} b); }})"
    return f"({{ u64 a = {left}, b = {right}; (s64)b < 0 ? {more}ULL : (u64)(a {sign} b); }})"


def _compares_signed(node: Node, other: Node) -> bool:
    if isinstance(node, nodes.Constant) and node.value >= 0:
        return is_signed(other) and node.value < 1 << 63
    return is_signed(node)


def _matches(node: nodes.Matches) -> str:
    """Whether a string is this one: its bytes, as many as there are, and the 0 behind."""
    assert isinstance(node.text.type, Words)
    if isinstance(node.text, nodes.FieldText):
        return _field_matches(node, node.text)
    wanted, most = node.value + b"\0", node.text.type.bytes
    is_comm = isinstance(node.text, nodes.Input)
    if is_comm and len(wanted) > COMM:
        return "0ULL"
    size = COMM if is_comm else len(wanted) + 1
    count = -(-size // _WORD)
    if is_comm:
        filled = f"bpf_get_current_comm(t, {COMM:d});"
        whole = ""
    else:
        assert isinstance(node.text, nodes.Read)
        # One byte more than is wanted: a longer string is another one.
        at = expression(node.text.address)
        read = min(size, most) if most < len(wanted) else size
        filled = f"long n = bpf_probe_read_user_str(t, {read:d}, (void *){at}); if (n < 0) fault = 1;"
        whole = f"n == {len(wanted):d} && "
    return f"({{ u64 t[{count:d}] = {{}}; {filled} (u64)({whole}{_equal(wanted)}); }})"


def _field_matches(node: nodes.Matches, text: nodes.FieldText) -> str:
    """Comparison with a string of a tracepoint, of which an array need not end with a 0."""
    assert isinstance(text.type, Words)
    wanted = node.value + b"\0"
    if text.layout is nodes.Layout.IN_PLACE and len(node.value) > text.type.bytes:
        return "0ULL"
    count = len(wanted) // _WORD + 1
    return f"({{ u64 t[{count:d}] = {{}}; {field_text('t', len(wanted) + 1, text)} (u64)({_equal(wanted)}); }})"


def field_text(to: str, most: int, text: nodes.FieldText) -> str:
    """A statement of C that reads at most so many bytes of a tracepoint's string to ``to``, which is all 0."""
    assert isinstance(text.type, Words)
    if text.layout is nodes.Layout.IN_PLACE:
        size = min(text.type.bytes, most)
        return f"if (bpf_probe_read_kernel({to}, {size:d}, (u8 *)ctx + {text.offset:d})) fault = 1;"
    return f"if (field_text({to}, {most:d}, ctx, {text.offset:d}, {text.layout:d}) < 0) fault = 1;"


def _equal(wanted: bytes) -> str:
    """Whether the words in ``t`` begin with these bytes."""
    padded = wanted.ljust(-(-len(wanted) // _WORD) * _WORD, b"\0")
    equal = []
    for i in range(-(-len(wanted) // _WORD)):
        (value,) = struct.unpack_from("<Q", padded, i * _WORD)
        used = min(len(wanted) - i * _WORD, _WORD)
        mask = (1 << 8 * used) - 1
        equal.append(f"(t[{i:d}] & {mask:#x}ULL) == {value:#x}ULL")
    return " && ".join(equal)


_FORMS: dict[type[Node], Callable[[Any], str]] = {
    nodes.Constant: _constant,
    nodes.Input: _input,
    nodes.Load: _load,
    nodes.Field: _field,
    nodes.Convert: _converted,
    nodes.Negate: _negated,
    nodes.Calculate: _calculated,
    nodes.Compare: _compared,
    nodes.Both: _both,
    nodes.Matches: _matches,
    nodes.Saved: _saved,
}
