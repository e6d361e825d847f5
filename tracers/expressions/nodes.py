"""The tree of an expression whose names and types are known: what C is made from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import IntEnum

from .types import Integer, Type


class Layout(IntEnum):
    """Layout of a string in a tracepoint's record: in place, at an offset from the record's begin (__data_loc), or from
    the end of the word that has it (__rel_loc)."""

    IN_PLACE = 0
    FROM_BEGIN = 1
    FROM_HERE = 2


@dataclass(frozen=True)
class Node:
    """``type`` of its value."""

    type: Type


@dataclass(frozen=True)
class Constant(Node):
    value: int


@dataclass(frozen=True)
class Literal(Node):
    """A string that is only compared with."""

    value: bytes


@dataclass(frozen=True)
class Input(Node):
    """Input that the probe knows: ``arg1`` … ``arg6``, ``retval``, ``duration`` (ns), ``pid``, ``tid``, ``comm``;
    ``sp``, the stack pointer; and the other registers, as ``%r12`` (`REGISTERS`)."""

    name: str


@dataclass(frozen=True)
class Load(Node):
    """The integer or pointer in user memory at an address."""

    address: Node


@dataclass(frozen=True)
class Read(Node):
    """The string in user memory at an address."""

    address: Node


@dataclass(frozen=True)
class Field(Node):
    """The integer at this offset of a tracepoint's record."""

    offset: int


@dataclass(frozen=True)
class FieldText(Node):
    """The string there: an array, or what a word there says the place of."""

    offset: int
    layout: Layout


@dataclass(frozen=True)
class Convert(Node):
    """The low bits of an integer, extended again."""

    operand: Node


@dataclass(frozen=True)
class Negate(Node):
    """``sign``: ``- ~ !``."""

    sign: str
    operand: Node


@dataclass(frozen=True)
class Calculate(Node):
    """``sign``: an operator of C that gives a number."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Compare(Node):
    sign: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Matches(Node):
    """Whether a string is equal to a literal."""

    text: Node
    value: bytes


@dataclass(frozen=True)
class Both(Node):
    """``&&`` and ``||``: the right one counts only if the left one does not decide."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Saved(Node):
    """Value that was found at the entry of the call, in this place."""

    place: int


def children(node: Node) -> Iterator[Node]:
    """The nodes that it is made of."""
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, Node):
            yield value


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def needs_return(node: Node) -> bool:
    """Whether its value is known only when the call returns."""
    return any(isinstance(each, Input) and each.name in OF_RETURNS for each in walk(node))


def is_signed(node: Node) -> bool:
    """Whether its 64 bits are a signed number."""
    return isinstance(node.type, Integer) and node.type.signed


RETVAL = "retval"
REGISTERS = {
    **{f"%r{name}": name for name in ("ax", "bx", "cx", "dx", "si", "di", "bp", "sp")},
    **{f"%r{i}": f"r{i}" for i in range(8, 16)},
}
"""Names of `Input`, and the fields of struct pt_regs."""
DURATION = "duration"
OF_RETURNS = frozenset((RETVAL, DURATION))
"""Names of `Input` that are known when the call returns."""
