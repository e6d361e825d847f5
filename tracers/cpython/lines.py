"""The line of an instruction, by a code object's table.

Formats: Objects/lnotab_notes.txt of CPython 3.8 and 3.10, Objects/locations.md of 3.11 (InternalDocs/code_objects.md
later).
"""

from __future__ import annotations

from collections.abc import Iterator

from .layouts import Version

_NO_LINE = -128
_LONG, _NO_COLUMNS, _NONE = 14, 13, 15
_BITS = 64


def line_of(version: Version, table: bytes, first: int, instruction: int) -> int:
    """The line of the instruction at this byte of the code; the function's first one if the table does not say."""
    line = 0
    for begin, end, found in _ranges(version, table, first):
        if begin <= instruction < end:
            line = found
            break
    return line or first


def _ranges(version: Version, table: bytes, first: int) -> Iterator[tuple[int, int, int]]:
    """(begin, end, line) of the code's ranges, in bytes; line 0 where there is none."""
    if version < (3, 10):
        return _increments(table, first)
    return _deltas(table, first) if version < (3, 11) else _locations(table, first)


def _increments(table: bytes, first: int) -> Iterator[tuple[int, int, int]]:
    """Lines up to 3.9, as in PyCode_Addr2Line(): pairs of increments of address and line."""
    begin, line = 0, first
    for i in range(0, len(table) - 1, 2):
        end = begin + table[i]
        yield begin, end, line
        begin, line = end, line + _signed(table[i + 1])
    yield begin, 1 << 31, line


def _deltas(table: bytes, first: int) -> Iterator[tuple[int, int, int]]:
    """3.10: the size of a range, and the line's distance from the one before."""
    begin, line = 0, first
    for i in range(0, len(table) - 1, 2):
        end, delta = begin + table[i], _signed(table[i + 1])
        if delta != _NO_LINE:
            line += delta
        yield begin, end, 0 if delta == _NO_LINE else line
        begin = end


def _locations(table: bytes, first: int) -> Iterator[tuple[int, int, int]]:
    """Lines from 3.11 on: entries of different forms; the first byte has the highest bit, the form, and the length -
    1."""
    begin, line, at = 0, first, 0
    while at < len(table):
        form, units = table[at] >> 3 & 15, (table[at] & 7) + 1
        at += 1
        delta = form - 10 if 10 <= form < _NO_COLUMNS else 0
        if form in (_LONG, _NO_COLUMNS):
            delta, _ = _varint(table, at)
            delta = -(delta >> 1) if delta & 1 else delta >> 1
        while at < len(table) and not table[at] & 0x80:
            at += 1
        line += delta
        end = begin + 2 * units
        yield begin, end, 0 if form == _NONE else line
        begin = end


def _varint(table: bytes, at: int) -> tuple[int, int]:
    """Six bits a byte, the lowest first; bit 6 says that there are more. Returns the number and where it ends.

    What does not fit into 64 bits, as no line does, is cut: the table is hostile."""
    value = shift = 0
    while at < len(table) and shift < _BITS:
        byte = table[at]
        at += 1
        value |= (byte & 0x3F) << shift
        shift += 6
        if not byte & 0x40:
            break
    return value, at


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte
