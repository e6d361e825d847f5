"""Names of C++ functions with their arguments, where spaces, brackets and parentheses may be part of the name."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    rb"\boperator *(?:\(\)|<=>|<<=?|>>=?|->\*?|[<>]=?)|\(anonymous namespace\)|\.\(|->|[<>(){}\[\]]",
)
"""An angle in the name of an operator opens and closes nothing, and ``.(`` is Go's: ``main.(*Server).Serve``."""
_OPEN, _CLOSE = (b"<", b"(", b"{", b"[", b".("), (b">", b")", b"}", b"]")
_SCOPE = re.compile(rb"(?: const| volatile| &&?|\[abi:\w+\])*::")
"""Follows the arguments of a function that contains a local one: ``f(int) const::{lambda()#1}``."""


def inlined_names(name: bytes) -> list[bytes]:
    """The functions of ``a->b``, outermost first, the notation of Java's agents for inlined functions; an arrow in an
    operator of C++ (``x::operator->*``), or within its brackets, does not separate."""
    if b"->" not in name:
        return [name]
    depth, start, parts = 0, 0, []
    for token in _TOKEN.finditer(name):
        text = token[0]
        if text == b"->" and not depth:
            parts.append(name[start : token.start()])
            start = token.end()
        elif text in _OPEN:
            depth += 1
        elif text in _CLOSE:
            depth = max(depth - 1, 0)
    return [*parts, name[start:]]


def arguments_at(name: bytes, before: bytes = b"") -> int:
    """Position of the parenthesis of the argument list, -1 without one: the first one outside of template arguments
    after ``before``."""
    depth = 0
    for token in _TOKEN.finditer(name):
        text = token[0]
        if text == b"(" and not depth and name.endswith(before, 0, token.start()) and token.start():
            return token.start()
        if text in _OPEN:
            depth += 1
        elif text in _CLOSE:
            depth = max(depth - 1, 0)
    return -1


def without_arguments(name: bytes) -> bytes:
    """Removes the argument list of ``name`` and what follows it; the arguments of enclosing functions stay.

    ``std::function<void (int)>::operator()(int) const`` → ``std::function<void (int)>::operator()``;
    ``f(int)::{lambda(int)#1}::operator()(int)`` → ``f(int)::{lambda(int)#1}::operator()``. Names without arguments, and
    names that are not C++, stay as they are; if brackets do not match, everything from the first argument list is cut.
    """
    depth, start, last = 0, -1, -1
    for token in _TOKEN.finditer(name):
        text = token[0]
        if text in _OPEN:
            if not depth and text == b"(" and token.start():
                start = token.start()
            depth += 1
        elif text in _CLOSE:
            depth -= 1
            if depth < 0:
                break
            if not depth and start >= 0:
                last = last if _SCOPE.match(name, token.end()) else start
                start = -1
    if depth:
        last = arguments_at(name)
    return name[:last].rstrip() if last >= 0 else name
