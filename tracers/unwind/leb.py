"""LEB128 numbers (DWARF 5, 7.6), one at a time and in bulk."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_BYTES = 10
"""Maximum size of a 64-bit number."""
LIMIT = 1 << 40
"""Numbers read in bulk are clamped to this: no frame has such offsets, and products with an alignment fit 64 bits."""


class LebError(Exception):
    """A number without an end, or beyond 64 bits."""


def uleb(data: bytes, at: int) -> tuple[int, int]:
    """(unsigned number at offset ``at``, offset after it)."""
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
    """(signed number at offset ``at``, offset after it)."""
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
    """Sizes in bytes of the numbers at offsets ``at``; `MAX_BYTES` + 1 for those that are too long.

    At least `MAX_BYTES` bytes must follow each offset.
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
    """The numbers at offsets ``at``, clamped to ±`LIMIT`; see `leb_sizes`. Any number if too large or endless."""
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
