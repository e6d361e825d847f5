"""Text in the lines of SystemTap's scripts, escaped as in C."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\\([abfnrtv\"\\]|[0-7]{1,3})")
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", '"': '"', "\\": "\\"}


def plain(text: bytes) -> bytes:
    """The text that text_str() of SystemTap has escaped."""

    def one(match: re.Match[str]) -> str:
        return _LETTERS.get(match[1]) or chr(int(match[1], 8) & 0xFF)

    return _ESCAPE.sub(one, text.decode("latin-1")).encode("latin-1")


def unescaped(text: bytes) -> str:
    """The text that text_str() of SystemTap has escaped, as a string."""
    return plain(text).decode("utf-8", "surrogateescape")
