"""Makes hostile names (processes, symbols, paths) safe to show."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control, format (bidi overrides, zero width), surrogate, unassigned, line and paragraph separators."""
_BYTES = range(0xDC80, 0xDD00)
"""Surrogates that stand for the bytes 0x80 to 0xff of a name that is not UTF-8 (os.fsdecode, PEP 383)."""
_NAMED = 3
"""Number of names that are shown; others are only counted."""


def printable(name: str) -> str:
    r"""``name`` with everything that could control a terminal or be invisible in a page, as ``\x1b`` or ``\u202e``; a
    byte that is not UTF-8 is ``\xff``."""
    if name.isascii() and name.isprintable():
        return name
    return "".join(c if unicodedata.category(c) not in _INVISIBLE else _escape(c) for c in name)


def _escape(char: str) -> str:
    code = ord(char)
    if code in _BYTES:
        code -= _BYTES.start - 0x80
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def folded_name(name: str) -> str:
    r"""``name`` as one field of a folded line: ``;`` becomes ``:`` as in FlameGraph, control characters ``\xNN``."""
    return printable(name).replace(";", ":")


def json_text(name: str) -> str:
    r"""``name`` without lone surrogates, which parsers refuse or change: a byte that is not UTF-8 becomes ``\xNN``."""
    try:
        return name.encode(errors="surrogateescape").decode(errors="backslashreplace")
    except UnicodeEncodeError:
        # A surrogate that stands for no byte.
        return name.encode(errors="backslashreplace").decode()


def shortened(text: str, most: int) -> str:
    """``text`` in at most ``most`` (> 2) characters: what is too much goes from its middle, ``…`` in its place."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def some(names: Sequence[str]) -> str:
    """``a, b, c and 2 more``, printable."""
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(map(printable, names[:_NAMED])) + more
