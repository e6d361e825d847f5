"""Rules for code without call frame information: from Go's own table, and from the code itself."""

from __future__ import annotations

import bisect
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from ..images.elf import ElfError, ElfFile
from .golang import GoFunction, go_functions, go_roots, go_rows
from .prologues import read_prologues
from .rows import END, GAP, pack
from .sections import Sections

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Pairs = list[tuple[int, int]]


class More(NamedTuple):
    """Rules in addition to those of the frame descriptions."""

    rows: Pairs
    """(virtual address, word as packed by `rows.pack`), outside of what is described."""
    ends: Pairs
    """(begin, end) of code whose frames are outermost, whatever describes it."""

    def within(self, begin: int, end: int) -> More:
        """The part between two addresses, relative to the first."""
        rows = [(pc - begin, word) for pc, word in self.rows if begin <= pc < end]
        return More(rows, [(low - begin, high - begin) for low, high in self.ends if begin <= low < high < end])


def find_more(
    elf: ElfFile, sections: Sections, begins: NDArray[np.uint64], ends: NDArray[np.uint64], refused: Counter[str]
) -> More:
    """``begins`` and ``ends``: the functions that are described, sorted, without overlaps. Counts what is refused."""
    more = More([], [])
    described = sorted(zip(begins.tolist(), ends.tolist(), strict=True))
    if sections.go is not None:
        try:
            functions = go_functions(sections.go)
            free = _outside(functions, described)
            more.rows.extend(go_rows(sections.go, free))
            more.ends.extend(go_roots(functions, elf.code_at))
            described = sorted([*described, *((function.pc, function.end) for function in free)])
        except ElfError as error:
            refused[str(error)] += 1
    if sections.code is not None:
        reading = read_prologues(elf, sections.code, described)
        more = More(sorted([*more.rows, *reading.rows]), more.ends)
        refused.update(reading.refused)
    return more


def combine(
    pcs: NDArray[np.uint32], words: NDArray[np.uint32], more: More
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Sorted rules of a table, and ``more``: one for each address. A gap gives way to a rule."""
    import numpy as np

    if more.rows:
        own = np.array(more.rows, np.int64)
        pcs = np.concatenate([pcs, own[:, 0].astype(np.uint32)])
        words = np.concatenate([words, own[:, 1].astype(np.uint32)])
        order = np.lexsort((words != pack(GAP), pcs))
        pcs, words = pcs[order], words[order]
        last = np.ones(len(pcs), bool)
        last[:-1] = pcs[1:] != pcs[:-1]
        pcs, words = pcs[last], words[last]
    for begin, end in more.ends:
        pcs, words = _overlaid(pcs, words, begin, end)
    return pcs, words


def _overlaid(
    pcs: NDArray[np.uint32], words: NDArray[np.uint32], begin: int, end: int
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """`END` from ``begin`` to ``end``."""
    import numpy as np

    first, after = np.searchsorted(pcs, np.array([begin, end], np.uint32), "left").tolist()
    goes_on = after - 1
    middle = [(begin, pack(END))]
    if after == len(pcs) or pcs[after] != end:
        middle.append((end, int(words[goes_on]) if goes_on >= 0 else pack(GAP)))
    between = np.array(middle, np.int64)
    return (
        np.concatenate([pcs[:first], between[:, 0].astype(np.uint32), pcs[after:]]),
        np.concatenate([words[:first], between[:, 1].astype(np.uint32), words[after:]]),
    )


def _outside(functions: list[GoFunction], described: Pairs) -> list[GoFunction]:
    """The functions that do not overlap what is described."""
    ends = [end for _, end in described]
    free = []
    for function in functions:
        i = bisect.bisect(ends, function.pc)
        if i == len(described) or described[i][0] >= function.end:
            free.append(function)
    return free
