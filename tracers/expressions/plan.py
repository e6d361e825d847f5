"""Parts of the questions that are answered when a call begins, and those that are when it returns."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from .asked import Ask, Bound
from .nodes import Both, Constant, Input, Node, Saved, needs_return
from .types import I32, Words

PLACES = 48
"""Values that a call can keep for its return."""
_ANY_TIME = frozenset(("pid", "tid", "comm"))


@dataclass(frozen=True)
class Part:
    """``number``: of the question, from 0 on."""

    number: int
    ask: Ask
    nodes: tuple[Node, ...]


@dataclass
class Plan:
    """``saved``: what is computed at the entry for the return; `Saved` nodes have its places."""

    enter_where: Node | None = None
    enter: list[Part] = field(default_factory=list)
    saved: list[Node] = field(default_factory=list)
    return_where: Node | None = None
    returns: list[Part] = field(default_factory=list)
    over: int = 0
    """ns; ``returns`` are answered of calls that take longer alone. 0: of all."""

    @property
    def at_return(self) -> bool:
        """Whether anything is asked when a call returns."""
        return self.return_where is not None or bool(self.returns)


class TooMuch(ValueError):
    """A call would have to keep more than `PLACES` values."""


def plan(bound: Bound) -> Plan:
    """The plan for one function. A value of arguments is that at the entry of the call. TooMuch."""
    made = Plan(over=bound.over)
    for node in _conditions(bound.where):
        if needs_return(node):
            made.return_where = _and(made.return_where, _split(node, made.saved))
        else:
            made.enter_where = _and(made.enter_where, node)
    for number, values in enumerate(bound.values):
        if not made.over and made.return_where is None and not any(map(needs_return, values.nodes)):
            made.enter.append(Part(number, values.question.ask, values.nodes))
        else:
            split = tuple(_split(node, made.saved) for node in values.nodes)
            made.returns.append(Part(number, values.question.ask, split))
    if len(made.saved) > PLACES:
        raise TooMuch
    return made


def _conditions(where: Node | None) -> list[Node]:
    """Conditions that all have to be true."""
    if where is None:
        return []
    if isinstance(where, Both) and where.sign == "&&":
        return [*_conditions(where.left), *_conditions(where.right)]
    return [where]


def _and(left: Node | None, right: Node) -> Node:
    return Both(I32, "&&", left, right) if left is not None else right


def _split(node: Node, saved: list[Node]) -> Node:
    """The node for the return: its largest parts that are known at the entry are saved there."""
    if isinstance(node, Constant) or (isinstance(node, Input) and node.name in _ANY_TIME):
        return node
    if not needs_return(node):
        if node not in saved:
            saved.append(node)
        return Saved(node.type, saved.index(node))
    changed: dict[str, Any] = {}
    for each in fields(node):
        value = getattr(node, each.name)
        if isinstance(value, Node):
            changed[each.name] = _split(value, saved)
    return replace(node, **changed)


def is_text(node: Node) -> bool:
    """Whether its value is a string."""
    return isinstance(node.type, Words)
