"""Stores text that is not UTF-8 in a string table of UTF-8.

A lone surrogate (a byte of a name that was not UTF-8, see os.fsdecode) is written as the text ``\\udc80``; a
backslash that would look like the start of such an escape is written as ``\\u005c``.
"""

from __future__ import annotations

import re

_SURROGATE = re.compile("[\ud800-\udfff]")
_AMBIGUOUS = re.compile(r"\\(?=u(?:d[89a-f][0-9a-f]{2}|005c))")
_ESCAPE = re.compile(r"\\u(d[89a-f][0-9a-f]{2}|005c)")


def escape(text: str) -> str:
    """``text`` in a form that can be encoded as UTF-8."""
    if "\\u" in text:
        text = _AMBIGUOUS.sub(r"\\u005c", text)
    return text if text.isascii() else _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def unescape(text: str) -> str:
    """The inverse of `escape`."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text) if "\\u" in text else text
