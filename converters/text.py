"""Making hostile names (processes, symbols, paths) safe to show."""

from __future__ import annotations

import unicodedata

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control, format (bidi overrides, zero width), surrogate, unassigned, line and paragraph separators."""


def printable(name: str) -> str:
    r"""``name`` with everything that could steer a terminal or hide in a page shown as ``\x1b`` or ``\u202e``."""
    if name.isascii() and name.isprintable():
        return name
    return "".join(c if unicodedata.category(c) not in _INVISIBLE else _escape(c) for c in name)


def _escape(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def folded_name(name: str) -> str:
    r"""``name`` as one field of a folded line: ``;`` becomes ``:`` as in FlameGraph, control characters ``\xNN``."""
    return printable(name).replace(";", ":")
