"""LEB128 numbers (DWARF 5, 7.6), one at a time and in bulk."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_BYTES = 10
"""Of a 64-bit number."""
LIMIT = 1 << 40
"""What numbers in bulk are cut to: no frame has such offsets, and products with an alignment stay in 64 bits."""


class LebError(Exception):
    """A number without an end, or beyond 64 bits."""


def uleb(data: bytes, at: int) -> tuple[int, int]:
    """(unsigned number at offset ``at``, offset behind it)."""
    value = shift = 0
    for byte in data[at : at + MAX_BYTES]:
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
    for byte in data[at : at + MAX_BYTES]:
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if byte < 0x80:
            value -= (byte & 0x40) << (shift - 6)
            if not -1 << 63 <= value < 1 << 63:
                break
            return value, at
    raise LebError


def leb_sizes(octets: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many bytes the numbers at offsets ``at`` have, `MAX_BYTES` + 1 when that is too many.

    Behind each offset there must be `MAX_BYTES` bytes to look at.
    """
    import numpy as np

    size = np.ones(len(at), np.int64)
    more = np.flatnonzero(octets[at] >= 0x80)
    while len(more):
        size[more] += 1
        more = more[(size[more] <= MAX_BYTES)]
        more = more[octets[at[more] + size[more] - 1] >= 0x80]
    return size


def lebs(octets: NDArray[np.uint8], at: NDArray[np.int64], signed: bool) -> NDArray[np.int64]:
    """The numbers at offsets ``at``, cut to ±`LIMIT`; see `leb_sizes`. One that is too large or has no end is any."""
    import numpy as np

    first = octets[at]
    if signed:
        value: NDArray[np.int64] = (first & 0x7F).astype(np.int64) - ((first & 0x40).astype(np.int64) << 1)
    else:
        value = first.astype(np.int64)
    longer = np.flatnonzero(first >= 0x80)
    if len(longer):
        value[longer] = _long(octets, at[longer], signed)
    return value


def _long(octets: NDArray[np.uint8], at: NDArray[np.int64], signed: bool) -> NDArray[np.int64]:
    import numpy as np

    size = leb_sizes(octets, at)
    value = np.zeros(len(at), np.uint64)
    for index in range(min(int(size.max()), MAX_BYTES)):
        septet = (octets[at + index] & 0x7F).astype(np.uint64) << np.uint64(7 * index)
        value |= np.where(index < size, septet, np.uint64(0))
    if not signed:
        number: NDArray[np.int64] = np.minimum(value, np.uint64(LIMIT)).astype(np.int64)
        return number
    bits = np.minimum(7 * size, 64).astype(np.uint64)
    unused = np.uint64(64) - bits
    number = (value << unused).view(np.int64) >> unused.astype(np.int64)
    clipped: NDArray[np.int64] = np.clip(number, -LIMIT, LIMIT)
    return clipped
