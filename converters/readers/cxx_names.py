"""Names of C++ functions with their arguments, where spaces, brackets and parentheses may be part of the name."""

from __future__ import annotations

import re

_TOKEN = re.compile(rb"operator *(?:\(\)|<=>|<<=?|>>=?|->\*?|[<>]=?)|\(anonymous namespace\)|->|[<>()]")


def arguments_at(name: bytes, before: bytes = b"") -> int:
    """Where the parenthesis of the argument list is, -1 without one: the first, outside of template arguments, that
    stands after ``before``."""
    depth = 0
    for token in _TOKEN.finditer(name):
        text = token[0]
        if text == b"(" and not depth and name.endswith(before, 0, token.start()) and token.start():
            return token.start()
        if text in (b"<", b"("):
            depth += 1
        elif text in (b">", b")"):
            depth = max(depth - 1, 0)
    return -1
