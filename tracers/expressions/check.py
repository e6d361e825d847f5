"""Gives names and types to an expression. What is wrong with it is told with the place."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from . import nodes, types
from .lexer import QuestionError
from .nodes import DURATION, RETVAL, Node
from .syntax import Binary, Cast, Expression, Index, Member, Name, Number, Text, Unary
from .types import I64, TEXT, U32, U64, Array, Integer, Pointer, Struct, Type, Unreadable, Words

LITERAL = 64
"""Longest string to compare with, in bytes."""
COMM = 16
"""Bytes of a thread's name: TASK_COMM_LEN of include/linux/sched.h."""
STRING = 64
"""Bytes that are read of a string."""
_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_FLAG = types.I32
_TOP = 1 << 63

BUILT_IN: Mapping[str, Node] = {
    **{f"arg{i}": nodes.Input(U64, f"arg{i}") for i in range(1, 7)},
    RETVAL: nodes.Input(I64, RETVAL),
    DURATION: nodes.Input(U64, DURATION),
    "pid": nodes.Input(U32, "pid"),
    "tid": nodes.Input(U32, "tid"),
    "comm": nodes.Input(Words(COMM), "comm"),
}
"""Names that every expression can use."""

OF_THREADS: Mapping[str, Node] = {name: BUILT_IN[name] for name in ("pid", "tid", "comm")}
"""Names that have nothing to do with the arguments."""
NO_RETURN: Mapping[str, Node] = {
    RETVAL: nodes.Input(types.Unreadable("what a call returns, and here only entries are seen"), RETVAL),
    DURATION: nodes.Input(types.Unreadable("known when a call returns, and here only entries are seen"), DURATION),
}
"""Meaning of these names where nothing returns."""

Known = Callable[[str], "Node | None"]
"""Finds the meaning of a name; None: it has none."""


class Unknown(QuestionError):
    """A name that nothing explains: debug information might."""


class Checker:
    """Checks expressions that use these names."""

    def __init__(self, find: Known, names: Callable[[], list[str]]) -> None:
        self._find, self._names = find, names

    def value(self, tree: Expression) -> Node:
        """Value that can be counted, compared or printed: a number, an address or a string. QuestionError."""
        found = self._node(tree)
        if isinstance(found, nodes.Literal):
            raise QuestionError("a string is only compared, with == or !=", tree.begin, tree.end)
        if isinstance(found.type, Struct):
            has = ", ".join(found.type.members.names()[:8])
            raise QuestionError(f"this is {found.type.title}, not a value: take a member: {has}", tree.begin, tree.end)
        return found

    def number(self, tree: Expression, what: str) -> Node:
        """A number, or an address. QuestionError; ``what`` needs it, such as "a histogram"."""
        found = self.value(tree)
        if not _is_number(found):
            raise QuestionError(f"{what} needs a number, and this is a string", tree.begin, tree.end)
        return found

    def _node(self, tree: Expression) -> Node:
        if isinstance(tree, Number):
            return nodes.Constant(U64 if tree.value >= _TOP else I64, tree.value)
        found: Node | None = None
        for kind, method in _METHODS.items():
            if isinstance(tree, kind):
                found = method(self, tree)
        assert found is not None
        return found

    def _literal(self, tree: Text) -> Node:
        if len(tree.value) > LITERAL:
            raise QuestionError(f"a string to compare with has at most {LITERAL} bytes", tree.begin, tree.end)
        if b"\0" in tree.value:
            raise QuestionError("a string has no 0 in it", tree.begin, tree.end)
        return nodes.Literal(TEXT, tree.value)

    def _name(self, tree: Name) -> Node:
        found = self._find(tree.name)
        if found is None:
            near = difflib.get_close_matches(tree.name, self._names(), 1)
            has = f"did you mean {near[0]}?" if near else f"there are {', '.join(self._names())}"
            raise Unknown(f"{tree.name!r} is not known; {has}", tree.begin, tree.end)
        if isinstance(found.type, Unreadable):
            raise QuestionError(f"this cannot be read: it is {found.type.why}", tree.begin, tree.end)
        return found

    def _operand(self, tree: Expression) -> Node:
        """A number, or an address."""
        found = self.value(tree)
        if not _is_number(found):
            raise QuestionError("this is a string: only == and != take one", tree.begin, tree.end)
        return found

    def _unary(self, tree: Unary) -> Node:
        if tree.sign == "*":
            return self._load(tree)
        operand = self._operand(tree.operand)
        if tree.sign == "!":
            return nodes.Negate(_FLAG, "!", operand)
        if isinstance(operand.type, Pointer):
            raise QuestionError("this is an address: say u64(…) to calculate with it", tree.begin, tree.end)
        if isinstance(operand, nodes.Constant) and tree.sign == "-":
            if operand.value > _TOP:
                raise QuestionError("this number has more than 64 bits with its sign", tree.begin, tree.end)
            return nodes.Constant(I64, -operand.value)
        kind = I64 if tree.sign == "-" or nodes.is_signed(operand) else U64
        return nodes.Negate(kind, tree.sign, operand)

    def _binary(self, tree: Binary) -> Node:
        if tree.sign in ("&&", "||"):
            return nodes.Both(_FLAG, tree.sign, self._operand(tree.left), self._operand(tree.right))
        if tree.sign in _COMPARISONS:
            return self._compare(tree)
        left, right = self._operand(tree.left), self._operand(tree.right)
        for each, part in ((left, tree.left), (right, tree.right)):
            if isinstance(each.type, Pointer):
                raise QuestionError(
                    "this is an address: say u64(…) to calculate with it, or […] for what is there",
                    part.begin,
                    part.end,
                )
        if isinstance(right, nodes.Constant):
            if tree.sign in ("/", "%") and not right.value:
                raise QuestionError("a division by 0", tree.right.begin, tree.right.end)
            if tree.sign in ("<<", ">>") and not 0 <= right.value < 64:
                raise QuestionError("a shift is by 0 to 63 bits", tree.right.begin, tree.right.end)
        if tree.sign in ("<<", ">>"):
            return nodes.Calculate(I64 if nodes.is_signed(left) else U64, tree.sign, left, right)
        signed = nodes.is_signed(left) and nodes.is_signed(right)
        return nodes.Calculate(I64 if signed else U64, tree.sign, left, right)

    def _compare(self, tree: Binary) -> Node:
        left, right = self._node(tree.left), self._node(tree.right)
        if isinstance(left, nodes.Literal) and isinstance(right, nodes.Literal):
            raise QuestionError("these are two constants", tree.begin, tree.end)
        for text, literal, part in ((left, right, tree.left), (right, left, tree.right)):
            if isinstance(literal, nodes.Literal):
                return self._matches(tree, text, literal, part)
        left, right = self._operand(tree.left), self._operand(tree.right)
        if isinstance(left, nodes.Constant) and isinstance(right, nodes.Constant):
            raise QuestionError("these are two constants", tree.begin, tree.end)
        return nodes.Compare(_FLAG, tree.sign, left, right)

    def _matches(self, tree: Binary, text: Node, literal: nodes.Literal, part: Expression) -> Node:
        if tree.sign not in ("==", "!="):
            raise QuestionError("strings are compared with == and != only", tree.begin, tree.end)
        self.value(part)
        found = as_text(text)
        if found is None:
            raise QuestionError(
                f"this is {_a(text.type)}, not a string: say str(…) if a string is at that address",
                part.begin,
                part.end,
            )
        made = nodes.Matches(_FLAG, found, literal.value)
        return made if tree.sign == "==" else nodes.Negate(_FLAG, "!", made)

    def _load(self, tree: Unary) -> Node:
        operand = self._node(tree.operand)
        return self._at(_decayed(operand), 0, tree, tree.operand)

    def _index(self, tree: Index) -> Node:
        of, index = _decayed(self._node(tree.of)), self._operand(tree.index)
        if isinstance(index.type, Pointer):
            raise QuestionError("an index is a number", tree.index.begin, tree.index.end)
        target = of.type.target if isinstance(of.type, Pointer) else None
        if target is None or not target.size:
            self._refuse_load(of, tree.of)
        assert target is not None
        scaled = nodes.Calculate(U64, "*", index, nodes.Constant(U64, target.size))
        moved = nodes.Calculate(U64, "+", of, scaled)
        return self._at(nodes.Convert(of.type, moved), 0, tree, tree.of)

    def _member(self, tree: Member) -> Node:
        if isinstance(tree.of, Name) and self._find(f"{tree.of.name}.{tree.name}"):
            return self._name(Name(tree.begin, tree.end, f"{tree.of.name}.{tree.name}"))
        of = _decayed(self._node(tree.of))
        struct = of.type
        # A struct's own node is its address; a pointer's value is the same.
        if isinstance(struct, Pointer) and isinstance(struct.target, Struct):
            struct = struct.target
        if not isinstance(struct, Struct):
            raise QuestionError(f"this is {_a(of.type)}, and has no members", tree.of.begin, tree.of.end)
        found = struct.members.find(tree.name)
        if found is None:
            names = struct.members.names()
            near = difflib.get_close_matches(tree.name, names, 1)
            has = f"did you mean {near[0]}?" if near else f"it has {', '.join(names[:8]) or 'no members'}"
            raise QuestionError(
                f"{struct.title} has no member {tree.name!r}; {has}", tree.end - len(tree.name), tree.end
            )
        offset, kind = found
        return self._at(nodes.Convert(Pointer(kind), of), offset, tree, tree)

    def _at(self, address: Node, offset: int, tree: Expression, part: Expression) -> Node:
        """Value in memory so many bytes behind an address; of structs and arrays, the address."""
        kind = address.type
        if not isinstance(kind, Pointer):
            self._refuse_load(address, part)
        assert isinstance(kind, Pointer)
        target = kind.target
        place = nodes.Calculate(U64, "+", address, nodes.Constant(U64, offset)) if offset else address
        if isinstance(target, Unreadable):
            raise QuestionError(f"this cannot be read: it is {target.why}", tree.begin, tree.end)
        if isinstance(target, Integer | Pointer):
            return nodes.Load(target, place)
        if isinstance(target, Struct):
            return nodes.Convert(target, place)
        if isinstance(target, Array):
            return nodes.Convert(Pointer(target.element, target.size), place)
        self._refuse_load(address, part)
        raise AssertionError

    def _refuse_load(self, of: Node, part: Expression) -> None:
        if isinstance(of.type, Pointer):
            raise QuestionError("it is not known what is at this address: say so, as in u32*(…)", part.begin, part.end)
        raise QuestionError(f"this is {_a(of.type)}, not an address: u32*(…) makes one of it", part.begin, part.end)

    def _cast(self, tree: Cast) -> Node:
        operand = self._operand(tree.operand)
        kind = types.of_name(tree.type, tree.stars)
        return converted(operand, kind)


def converted(operand: Node, kind: Type) -> Node:
    """The value as one of this type."""
    if isinstance(operand, nodes.Constant) and isinstance(kind, Integer):
        value = operand.value & ((1 << kind.bits) - 1)
        if kind.signed and value >> (kind.bits - 1):
            value -= 1 << kind.bits
        return nodes.Constant(kind, value)
    return nodes.Convert(kind, operand)


def as_text(found: Node) -> Node | None:
    """The string that a value is or leads to; None if it is a number."""
    if isinstance(found.type, Words):
        return found
    if isinstance(found.type, Pointer) and found.type.is_text:
        size = min(found.type.limit or STRING, STRING)
        return nodes.Read(Words(size), found)
    return None


def _decayed(found: Node) -> Node:
    """Address of an array's first element; anything else as it is."""
    if isinstance(found.type, Array):
        return nodes.Convert(Pointer(found.type.element, found.type.size), found)
    return found


def _is_number(found: Node) -> bool:
    return isinstance(found.type, Integer | Pointer)


def _a(kind: Type) -> str:
    title = kind.title
    if isinstance(kind, Integer):
        return f"a number ({title})"
    if isinstance(kind, Pointer):
        return f"an address ({title})"
    return "a string" if isinstance(kind, Words) else title


_METHODS: dict[type[Expression], Callable[[Checker, Any], Node]] = {
    Text: Checker._literal,
    Name: Checker._name,
    Unary: Checker._unary,
    Binary: Checker._binary,
    Member: Checker._member,
    Index: Checker._index,
    Cast: Checker._cast,
}
