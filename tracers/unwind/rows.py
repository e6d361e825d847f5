"""The compiled form of a file's unwind rules: sorted 8-byte rows, made to be searched in BPF.

A row holds from its ``pc`` on, until the next row's. To step from a frame to its caller (x86-64):

    CFA  by the row's CFA kind, see `RSP` … `SIGNAL`
    return address at CFA-8 (`SIGNAL`: in the word behind the one that the CFA was read from)
    rbp by the row's rbp kind, see `RBP_SAME` … `RBP_UNKNOWN`
    rsp  is the CFA

All offsets are in words of 8 bytes. A caller's pc is looked up one byte lower, except when the callee's
row is a `SIGNAL` one: that pc was interrupted, nothing was called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

ROW = [("pc", "<u4"), ("cfa", "<i2"), ("rbp", "i1"), ("rule", "u1")]
"""numpy dtype of a row. ``pc``: virtual address in the file less the table's base. ``rule``: bits 0-3 the CFA kind,
bits 4-6 the rbp kind. ``cfa``, ``rbp``: what the kinds say."""

ROW_SIZE = 8
WORD = 8

GAP = 0
"""Nothing is known here; no frame description covers it."""
UNKNOWN = 1
"""A frame description covers it, but says what a row cannot; ``cfa`` is the index into `REASONS`."""
END = 2
"""The outermost frame: its return address is undefined."""
RSP, RBP = 3, 4
"""CFA = register + cfa."""
RSP_DEREF, RBP_DEREF = 5, 6
"""CFA = word at (register + cfa)."""
RSP_DEREF_8, RBP_DEREF_8 = 7, 8
"""CFA = word at (register + cfa), plus 8."""
PLT = 9
"""A stub of the procedure linkage table: CFA = rsp + 8, and 8 more where (pc & 15) >= cfa."""
SIGNAL = 10
"""A signal handler's caller: CFA (the interrupted rsp) = word at (rsp + cfa); the interrupted pc is the word behind."""

RBP_SAME = 0
"""rbp is the caller's."""
RBP_AT_CFA, RBP_AT_RSP, RBP_AT_RBP = 1, 2, 3
"""The caller's rbp is the word at (CFA, rsp or rbp) + rbp."""
RBP_UNKNOWN = 4
"""The caller's rbp is lost; ``rbp`` is the index into `REASONS`, 0 when it is undefined as the compiler said."""

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
    """Virtual address that the rows' ``pc`` count from: 0 for all files but those linked above 4 GiB."""
    rows: NDArray[np.void]
    """dtype `ROW`, sorted by pc, no two neighbours equal but for it; the last one is a `GAP`."""
    refused: Mapping[str, int]
    """What was left out, by reason: frame descriptions, and rows that are `UNKNOWN` or lose rbp."""

    def find(self, vaddrs: NDArray[np.uint64]) -> NDArray[np.void]:
        """The row that holds at each virtual address; a `GAP` before the first."""
        import numpy as np

        base = np.uint64(self.base)
        at = np.searchsorted(self.rows["pc"].astype(np.uint64) + base, vaddrs, "right")
        found: NDArray[np.void] = np.concatenate([np.zeros(1, ROW), self.rows])[at]
        return found


def pack(rule: int, cfa: int = 0, rbp: int = 0) -> int:
    """All of a row but its pc as the little-endian word that it is."""
    return cfa & 0xFFFF | (rbp & 0xFF) << 16 | rule << 24


def fits_cfa(words: int) -> bool:
    """Whether an offset can stand in a row's ``cfa``."""
    return -0x8000 <= words <= 0x7FFF


def fits_rbp(words: int) -> bool:
    """Whether an offset can stand in a row's ``rbp``."""
    return -0x80 <= words <= 0x7F


def merge(pcs: NDArray[np.uint32], words: NDArray[np.uint32]) -> NDArray[np.void]:
    """Rows of sorted ``pcs`` and what `pack` made of the rest; of equal neighbours the first stays."""
    import numpy as np

    keep = np.ones(len(pcs), bool)
    keep[1:] = words[1:] != words[:-1]
    both = np.empty((int(keep.sum()), 2), np.dtype("<u4"))
    both[:, 0] = pcs[keep]
    both[:, 1] = words[keep]
    rows: NDArray[np.void] = both.reshape(-1).view(ROW)
    return rows


def count_reasons(rows: NDArray[np.void]) -> dict[str, int]:
    """How many rows are `UNKNOWN`, or have lost rbp otherwise than by the compiler's word, by reason."""
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
