"""Protobuf's wire format in bulk: columns of byte strings that are combined for all records at once.

A record is one message; a column has a piece for each record, and pieces may have any length, including 0. The format
is described at protobuf.dev ("Encoding").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_VARINT, _BYTES = 0, 2
_MAX_VARINT = 10
_RECORDS = 1 << 14
"""Number of records combined at a time: each byte takes about 16 bytes of memory meanwhile."""


class Column(NamedTuple):
    """Piece ``i`` has ``lengths[i]`` bytes; the pieces follow each other in ``data``."""

    data: Array
    lengths: Array

    def bytes(self) -> bytes:
        """All pieces, joined."""
        return self.data.tobytes()


def varint(value: int) -> bytes:
    """Encodes one number; a negative one in 64-bit two's complement."""
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def number(field: int, value: int) -> bytes:
    """A field with a number."""
    return varint(field << 3 | _VARINT) + varint(value)


def text(field: int, value: bytes | str) -> bytes:
    """A field with a string, bytes, or a message."""
    encoded = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | _BYTES) + varint(len(encoded)) + encoded


def packed(field: int, values: Array) -> bytes:
    """A repeated field of numbers in packed form; b"" for an empty one."""
    return text(field, varints(values).bytes()) if len(values) else b""


def varints(values: Array) -> Column:
    """Encodes each number; negative ones in 64-bit two's complement."""
    values = np.asarray(values)
    values = values.astype(np.int64).view(np.uint64) if values.dtype.kind == "i" else values.astype(np.uint64)
    lengths = np.ones(len(values), np.int64)
    for size in range(1, _MAX_VARINT):
        longer = values >= np.uint64(1 << 7 * size)
        if not longer.any():
            break
        lengths += longer
    width = int(lengths.max(initial=1))
    digits = np.arange(width)
    table = (values[:, None] >> (7 * digits).astype(np.uint64)).astype(np.uint8) & 0x7F
    table |= ((digits < lengths[:, None] - 1) * 0x80).astype(np.uint8)
    return Column(table[digits < lengths[:, None]], lengths)


def numbers(field: int, values: Array) -> Column:
    """A field with a number, for each record."""
    return joined([constant(varint(field << 3 | _VARINT), len(values)), varints(values)])


def texts(field: int, table: Sequence[bytes], indices: Array) -> Column:
    """A field with a string from a table, for each record."""
    return chosen([text(field, each) for each in table], indices)


def messages(field: int, columns: Sequence[Column]) -> Column:
    """A field with a message that consists of the given fields, for each record."""
    inner = joined(columns)
    return joined([constant(varint(field << 3 | _BYTES), len(inner.lengths)), varints(inner.lengths), inner])


def constant(piece: bytes, count: int) -> Column:
    """Column with one piece for all records."""
    return Column(np.tile(np.frombuffer(piece, np.uint8), count), np.full(count, len(piece), np.int64))


def chosen(table: Sequence[bytes], indices: Array) -> Column:
    """A piece from a table for each record."""
    sizes = np.fromiter(map(len, table), np.int64, len(table))
    return picked(Column(np.frombuffer(b"".join(table), np.uint8), sizes), indices)


def picked(column: Column, indices: Array) -> Column:
    """Selected pieces, in any order, repetition allowed."""
    lengths = column.lengths[indices]
    starts = np.cumsum(column.lengths) - column.lengths
    return Column(column.data[_places(starts[indices], lengths)], lengths)


def stacked(columns: Sequence[Column]) -> Column:
    """The records of all columns, one after another."""
    return Column(
        np.concatenate([column.data for column in columns]), np.concatenate([column.lengths for column in columns])
    )


def where(condition: Array, column: Column) -> Column:
    """The pieces for which the condition holds, and empty ones for the others."""
    return Column(column.data[np.repeat(condition, column.lengths)], column.lengths * condition)


def joined(columns: Sequence[Column]) -> Column:
    """The pieces of each record, joined."""
    lengths = np.sum([column.lengths for column in columns], axis=0)
    data = np.empty(int(lengths.sum()), np.uint8)
    starts = np.cumsum(lengths) - lengths
    for column in columns:
        data[_places(starts, column.lengths)] = column.data
        starts = starts + column.lengths
    return Column(data, lengths)


def parts(count: int) -> list[slice]:
    """Divides ``count`` records into parts that are small enough for columns."""
    return [slice(at, min(at + _RECORDS, count)) for at in range(0, count, _RECORDS)]


def _places(starts: Array, lengths: Array) -> Array:
    """The index of each byte of pieces that begin at ``starts``."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))
