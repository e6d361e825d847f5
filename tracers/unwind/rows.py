"""The compiled form of a file's unwind rules: sorted 8-byte rows, designed to be searched in BPF.

A row is valid from its ``pc`` up to the next row's. To step from a frame to its caller (x86-64):

    CFA  by the row's CFA kind, see `RSP` … `SIGNAL`
    return address at CFA-8 (`SIGNAL`: in the word after the one that the CFA was read from)
    rbp by the row's rbp kind, see `RBP_SAME` … `RBP_UNKNOWN`
    rsp  is the CFA

All offsets are in words of 8 bytes. A caller's pc is looked up one byte lower, unless the callee's row is a
`SIGNAL` one: then the pc was interrupted and did not call anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

ROW = [("pc", "<u4"), ("cfa", "<i2"), ("rbp", "i1"), ("rule", "u1")]
"""numpy dtype of a row. ``pc``: virtual address in the file minus the table's base. ``rule``: bits 0-3 the CFA kind,
bits 4-6 the rbp kind. ``cfa``, ``rbp``: operands of these kinds."""

ROW_SIZE = 8
WORD = 8

GAP = 0
"""No frame description covers this code."""
UNKNOWN = 1
"""A frame description covers it, but cannot be expressed as a row; ``cfa`` is the index into `REASONS`."""
END = 2
"""The outermost frame: its return address is undefined."""
RSP, RBP = 3, 4
"""CFA = register + cfa."""
RSP_DEREF, RBP_DEREF = 5, 6
"""CFA = word at (register + cfa)."""
RSP_DEREF_8, RBP_DEREF_8 = 7, 8
"""CFA = word at (register + cfa), plus 8."""
PLT = 9
"""A stub of the procedure linkage table: CFA = rsp + 8, plus 8 where (pc & 15) >= cfa."""
SIGNAL = 10
"""A signal handler's caller: CFA (the interrupted rsp) = word at (rsp + cfa); the next word is the interrupted pc."""

RBP_SAME = 0
"""rbp is the caller's."""
RBP_AT_CFA, RBP_AT_RSP, RBP_AT_RBP = 1, 2, 3
"""The caller's rbp is the word at (CFA, rsp or rbp) + rbp."""
RBP_UNKNOWN = 4
"""The caller's rbp is lost; ``rbp`` is the index into `REASONS`, 0 when the compiler declared it undefined."""

REASONS = (
    "",
    "damaged instructions",
    "CFA by another register",
    "CFA by an unknown expression",
    "CFA offset that does not fit a row",
    "return address elsewhere",
    "stack pointer elsewhere",
    "rbp elsewhere",
    "rbp offset that does not fit a row",
)
(
    DEFINED, DAMAGED, CFA_REGISTER, CFA_EXPRESSION, CFA_OFFSET, RA_ELSEWHERE, SP_ELSEWHERE, RBP_ELSEWHERE, RBP_OFFSET,
) = range(len(REASONS))  # fmt: skip
_LOST_RBP = RBP_UNKNOWN << 4


class UnwindTable(NamedTuple):
    """The rows of one file."""

    base: int
    """Virtual address that the rows' ``pc`` are relative to: 0 except for files linked above 4 GiB."""
    rows: NDArray[np.void]
    """dtype `ROW`, sorted by pc; neighbours always differ in more than pc; the last one is a `GAP`."""
    refused: Mapping[str, int]
    """Number of items left out, by reason: frame descriptions, and rows that are `UNKNOWN` or lose rbp."""

    def find(self, vaddrs: NDArray[np.uint64]) -> NDArray[np.void]:
        """The row that applies at each virtual address; a `GAP` before the first."""
        import numpy as np

        base = np.uint64(self.base)
        at = np.searchsorted(self.rows["pc"].astype(np.uint64) + base, vaddrs, "right")
        found: NDArray[np.void] = np.concatenate([np.zeros(1, ROW), self.rows])[at]
        return found


def pack(rule: int, cfa: int = 0, rbp: int = 0) -> int:
    """A row without its pc, as a little-endian word."""
    return cfa & 0xFFFF | (rbp & 0xFF) << 16 | rule << 24


def fits_cfa(words: int) -> bool:
    """Whether an offset fits into a row's ``cfa``."""
    return -0x8000 <= words <= 0x7FFF


def fits_rbp(words: int) -> bool:
    """Whether an offset fits into a row's ``rbp``."""
    return -0x80 <= words <= 0x7F


def merge(pcs: NDArray[np.uint32], words: NDArray[np.uint32]) -> NDArray[np.void]:
    """Rows from sorted ``pcs`` and words made by `pack`; of equal neighbours the first stays."""
    import numpy as np

    keep = np.ones(len(pcs), bool)
    keep[1:] = words[1:] != words[:-1]
    both = np.empty((int(keep.sum()), 2), np.dtype("<u4"))
    both[:, 0] = pcs[keep]
    both[:, 1] = words[keep]
    rows: NDArray[np.void] = both.reshape(-1).view(ROW)
    return rows


def count_reasons(rows: NDArray[np.void]) -> dict[str, int]:
    """Number of rows, by reason, that are `UNKNOWN` or have lost rbp without the compiler declaring it undefined."""
    import numpy as np

    found: dict[str, int] = {}
    fields: list[Any] = [
        rows["cfa"][(rows["rule"] & 15) == UNKNOWN],
        rows["rbp"][(rows["rule"] & 0x70) == _LOST_RBP],
    ]
    for codes in fields:
        for code, count in zip(*np.unique(codes, return_counts=True), strict=True):
            if 0 < code < len(REASONS):
                found[REASONS[int(code)]] = int(count)
    return found
