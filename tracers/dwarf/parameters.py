"""Parameters of functions, from debug information, as values of expressions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...converters.base import helpers
from ..expressions import nodes
from ..expressions.asked import Asked
from ..expressions.nodes import RETVAL, Node
from ..expressions.syntax import Binary, Cast, Expression, Index, Member, Unary
from ..expressions.types import U64, Array, Integer, Members, Pointer, Struct, Type, Unreadable

SECONDS = 20
"""Seconds for the debug information of one file."""
_MOST = 4096
"""Functions of a file."""
_BYTES = 16 << 20
_INTEGERS = (1, 2, 4, 8)
_REGISTERS = frozenset(f"arg{i}" for i in range(1, 7))
_FAR = 1 << 31
_NONSENSE = (LookupError, TypeError, ValueError, AttributeError, RecursionError, OverflowError)
"""Errors that data raise that are not what they should be."""


@dataclass(frozen=True)
class Parameters:
    """Parameters of one function. ``fault``: why they are not known, "" if they are. ``shown``: as a declaration has
    them."""

    values: Mapping[str, Node]
    shown: tuple[str, ...] = ()
    fault: str = ""


def read_parameters(fd: int, addresses: Sequence[int], members: Iterable[str]) -> list[Parameters]:
    """Parameters of functions at these addresses of an open ELF file. ``members``: the names of members that
    expressions use."""
    if len(addresses) > _MOST:
        return [Parameters({}, fault="too many functions for debug information")] * len(addresses)
    wanted = {"addresses": list(addresses), "members": sorted(set(members)), "seconds": SECONDS}
    try:
        command = helpers.python_module(f"{__package__}.child", str(fd))
        data = json.dumps(wanted).encode()
        done = helpers.run(command, seconds=2 * SECONDS, most=_BYTES, data=data, fds=(fd,))
        found: Any = json.loads(done.output)
    except (OSError, ValueError, RecursionError):
        found = None
    return parameters_of(found, len(addresses))


def parameters_of(found: Any, count: int) -> list[Parameters]:
    """Parameters in the data of the reading process; of a file that was made to break it, these may be anything."""
    if not isinstance(found, dict):
        return [Parameters({}, fault="its debug information cannot be read")] * count
    if "fault" in found:
        return [Parameters({}, fault=str(found["fault"]))] * count
    try:
        types = _Types(found["types"])
        functions = [_function(each, types) for each in found["functions"]]
    except _NONSENSE:
        functions = []
    return functions if len(functions) == count else [Parameters({}, fault="its debug information is damaged")] * count


def member_names(asked: Asked) -> frozenset[str]:
    """Names of all members in the expressions."""
    trees = [each.tree for each in asked.declared] + [tree for _, tree in asked.where]
    trees += [tree for question in asked.questions for tree in question.trees]
    return frozenset(name for tree in trees for name in _members(tree))


def _members(tree: Expression) -> Iterable[str]:
    if isinstance(tree, Member):
        yield tree.name
        yield from _members(tree.of)
    elif isinstance(tree, Binary):
        yield from _members(tree.left)
        yield from _members(tree.right)
    elif isinstance(tree, Unary | Cast):
        yield from _members(tree.operand)
    elif isinstance(tree, Index):
        yield from _members(tree.of)
        yield from _members(tree.index)


def _function(found: Any, types: _Types) -> Parameters:
    if "fault" in found:
        return Parameters({}, fault=str(found["fault"]))
    values: dict[str, Node] = {}
    shown = []
    for each in found["parameters"]:
        name, kind = str(each["name"]), types.of(each["type"])
        shown.append(f"{name}: {kind.title}" if name else kind.title)
        if name:
            values[name] = _value(kind, each["place"])
    result = types.of(found["result"])
    if isinstance(result, Integer | Pointer):
        values[RETVAL] = nodes.Convert(result, nodes.Input(U64, RETVAL))
    elif isinstance(result, Unreadable):
        values[RETVAL] = nodes.Input(result, RETVAL)
    return Parameters(values, tuple(shown))


def _value(kind: Type, place: Sequence[Any]) -> Node:
    """A parameter. A reference to a number is that number."""
    if isinstance(kind, Unreadable):
        return nodes.Input(kind, "arg1")
    (where,) = place
    raw: Node
    if where in _REGISTERS:
        raw = nodes.Input(U64, where)
    else:
        offset = int(where)
        if not 0 < offset < _FAR:
            raise ValueError
        raw = nodes.Load(U64, nodes.Calculate(U64, "+", nodes.Input(U64, "sp"), nodes.Constant(U64, offset)))
    if isinstance(kind, _Reference):
        target = kind.target
        assert target is not None
        if isinstance(target, Integer | Pointer):
            return nodes.Load(target, raw)
        return nodes.Convert(Pointer(target), raw)
    return nodes.Convert(kind, raw)


@dataclass(frozen=True)
class _Reference(Pointer):
    """Reference of C++."""


class _Types:
    """Types by number, made when they are asked for: structs lead to themselves."""

    def __init__(self, found: Any) -> None:
        self._found = {int(number): each for number, each in found.items()}
        self._made: dict[int, Type] = {}

    def of(self, number: Any) -> Type:
        """Unreadable for void."""
        number = int(number)
        if number not in self._made:
            self._made[number] = Unreadable("of a type that leads to itself")
            self._made[number] = self._make(number)
        return self._made[number]

    def _make(self, number: int) -> Type:  # noqa: PLR0911
        if not number:
            return Unreadable("without a value")
        found = self._found[number]
        kind = found["kind"]
        if kind == "integer":
            if found["size"] not in _INTEGERS:
                raise ValueError
            return Integer(8 * int(found["size"]), bool(found["signed"]))
        if kind == "pointer":
            return Pointer(self._target(found["target"]))
        if kind == "reference":
            return _Reference(self._target(found["target"]))
        if kind == "array":
            count = int(found["count"])
            if not 0 <= count < _FAR:
                raise ValueError
            return Array(self.of(found["element"]), count)
        if kind == "struct":
            return Struct(str(found["name"]), _small(found["size"]), _Members(found["members"], self))
        return Unreadable(str(found["why"]))

    def _target(self, number: Any) -> Type | None:
        return self.of(number) if number else None


class _Members(Members):
    def __init__(self, found: Any, types: _Types) -> None:
        self._types = types
        self._found = {str(name): (_small(offset), int(number)) for name, offset, number in found}

    def find(self, name: str) -> tuple[int, Type] | None:
        if name not in self._found:
            return None
        offset, number = self._found[name]
        try:
            return offset, self._types.of(number)
        except _NONSENSE:  # only now is it looked at
            return offset, Unreadable("of a type whose debug information is damaged")

    def names(self) -> list[str]:
        return list(self._found)


def _small(value: Any) -> int:
    if not 0 <= int(value) < _FAR:
        raise ValueError
    return int(value)
