"""The tree of an expression as it was written, before names and types are known. Places are those of its text."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Expression:
    """``begin`` and ``end``: characters of the text."""

    begin: int
    end: int


@dataclass(frozen=True)
class Number(Expression):
    value: int


@dataclass(frozen=True)
class Text(Expression):
    value: bytes


@dataclass(frozen=True)
class Name(Expression):
    name: str


@dataclass(frozen=True)
class Unary(Expression):
    """``sign``: ``- ! ~ *``."""

    sign: str
    operand: Expression


@dataclass(frozen=True)
class Binary(Expression):
    sign: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Member(Expression):
    """``of.name``, or ``of->name``: both forms mean the same, as the type says which it is."""

    of: Expression
    name: str


@dataclass(frozen=True)
class Index(Expression):
    of: Expression
    index: Expression


@dataclass(frozen=True)
class Cast(Expression):
    """``u32(operand)``, with ``stars`` times ``*`` behind the type's name."""

    type: str
    stars: int
    operand: Expression


def names(tree: Expression) -> set[str]:
    """Names that it uses; not those of members."""
    found = {tree.name} if isinstance(tree, Name) else set()
    for field in fields(tree):
        value = getattr(tree, field.name)
        if isinstance(value, Expression):
            found |= names(value)
    return found
