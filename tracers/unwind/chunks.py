"""Cuts a table of rows into the form that the probes search: bpf/include/unwind.h.

Code is cut into chunks. A chunk has an index with one entry per page: where the page's rows begin and how many there
are. A search therefore looks at few rows, however long the table, and never crosses from one shard to another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from .rows import GAP, UnwindTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHARD_WORDS = 1 << 17
PAGE_SHIFT = 9
CHUNK_SHIFT = 22
"""4 MiB of code: small enough that parts of a big library can stay when other parts are evicted."""
MAPPING_WORDS = 3
TABLE_UNMAPPED, TABLE_NONE, TABLE_FIRST = 0, 1, 2
"""enum table_number."""
_PIECE_WORDS = 1 << 12
"""Rows that are kept together; a page has 512 at most."""


class Piece(NamedTuple):
    """Consecutive rows, for the pages from ``first_page`` on."""

    first_page: int
    pages: int
    rows: NDArray[np.uint64]


class Chunk(NamedTuple):
    """``number``: the chunk's code begins at virtual address number << CHUNK_SHIFT; pcs are relative to that.

    ``first`` and ``counts``: for each page, the position of its first row in its piece, and the number of its rows.
    """

    number: int
    first: NDArray[np.uint64]
    counts: NDArray[np.uint64]
    pieces: list[Piece]

    @property
    def words(self) -> int:
        """Memory that the chunk takes, in words of 8 bytes."""
        return len(self.first) + sum(len(piece.rows) for piece in self.pieces)


def cut(table: UnwindTable) -> Iterator[Chunk]:
    """The chunks of a table that hold anything but gaps."""
    import numpy as np

    rows = table.rows
    pcs = rows["pc"].astype(np.uint64) + np.uint64(table.base)
    if not len(pcs):
        return
    size = 1 << CHUNK_SHIFT
    rules = rows["rule"] & 15
    for number in range(int(pcs[0]) >> CHUNK_SHIFT, (int(pcs[-1]) >> CHUNK_SHIFT) + 1):
        begin = number << CHUNK_SHIFT
        low = int(np.searchsorted(pcs, np.uint64(begin), "right")) - 1
        high = int(np.searchsorted(pcs, np.uint64(begin + size), "left"))
        part = np.array(rows[max(low, 0) : high])
        if not (rules[max(low, 0) : high] != GAP).any():
            continue
        places = np.maximum(pcs[max(low, 0) : high], np.uint64(begin)) - np.uint64(begin)
        part["pc"] = places
        if low < 0:
            part = np.concatenate([np.zeros(1, part.dtype), part])
        yield _chunk(number, part, ends=high == len(pcs))


def _chunk(number: int, rows: NDArray[np.void], *, ends: bool) -> Chunk:
    """``rows`` must begin with a row for place 0; ``ends``: the last row is the table's closing gap."""
    import numpy as np

    places = rows["pc"].astype(np.int64)
    pages = (int(places[-1]) >> PAGE_SHIFT) + 1 if ends else 1 << CHUNK_SHIFT - PAGE_SHIFT
    starts = np.arange(pages, dtype=np.int64) << PAGE_SHIFT
    first = np.searchsorted(places, starts, "right") - 1
    last = np.searchsorted(places, starts + (1 << PAGE_SHIFT), "left") - 1
    words = rows.view("<u8")
    pieces = []
    at = np.zeros(pages, np.uint64)
    page = 0
    while page < pages:
        end = int(np.searchsorted(last, first[page] + _PIECE_WORDS, "left"))
        pieces.append(Piece(page, end - page, words[first[page] : last[end - 1] + 1]))
        at[page:end] = first[page:end] - first[page]
        page = end
    return Chunk(number, at, (last - first + 1).astype(np.uint64), pieces)
