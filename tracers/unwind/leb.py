"""LEB128 numbers (DWARF 5, 7.6)."""

from __future__ import annotations

_MAX_BYTES = 10
"""Of a 64-bit number."""


class LebError(Exception):
    """A number without an end, or beyond 64 bits."""


def uleb(data: bytes, at: int) -> tuple[int, int]:
    """(unsigned number at offset ``at``, offset behind it)."""
    value = shift = 0
    for byte in data[at : at + _MAX_BYTES]:
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if byte < 0x80:
            if value >= 1 << 64:
                break
            return value, at
    raise LebError


def sleb(data: bytes, at: int) -> tuple[int, int]:
    """(signed number at offset ``at``, offset behind it)."""
    value = shift = 0
    for byte in data[at : at + _MAX_BYTES]:
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if byte < 0x80:
            value -= (byte & 0x40) << (shift - 6)
            if not -1 << 63 <= value < 1 << 63:
                break
            return value, at
    raise LebError
