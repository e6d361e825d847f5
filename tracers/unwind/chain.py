"""Walks the chain of records in .eh_frame and .debug_frame (DWARF 5, 6.4.1; Linux Standard Base 5, 10.6)."""

from __future__ import annotations

import struct
from array import array
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAX_RECORDS = 1 << 21
_EXTENDED = 0xFFFFFFFF
_AT_ZERO, _BEYOND = 1, 2


class CfiError(Exception):
    """Reason why a section or record is not used."""


class Section(NamedTuple):
    """A section of frame records."""

    data: bytes
    vaddr: int
    is_eh: bool
    """True for .eh_frame, False for .debug_frame."""
    ends_at_zero: bool = False
    """Whether the section's size is not known: it ends at the first record of length 0."""
    hints: NDArray[np.int64] | None = None
    """Begins of frame descriptions, according to .eh_frame_hdr. Only used to read faster: hints that do not fit the
    records' own lengths are ignored."""


class Records(NamedTuple):
    """All frame descriptions (FDEs), in the section's order."""

    cie_at: NDArray[np.int64]
    """Begin of each one's CIE, according to the record; -1 if outside the section."""
    body: NDArray[np.int64]
    """Offset after the CIE pointer."""
    end: NDArray[np.int64]
    cies: dict[int, tuple[int, int]]
    """Common information entries: offset to (offset after the id, end of the entry)."""
    cut: bool
    """The data after the last record is not a record."""


def walk(section: Section) -> Records:
    """The records of a section. CfiError when there are too many to be plausible."""
    import numpy as np

    if section.hints is not None:
        found = _Walk(section).by_hints(section.hints)
        if found is not None:
            return found
    plain = _Walk(section)
    cut = plain.go(0, len(section.data)) == _BEYOND
    nothing = np.zeros(0, np.int64)
    return plain.records(nothing, nothing, nothing, cut)


class _Walk:
    def __init__(self, section: Section) -> None:
        self._section = section
        self._cie_at, self._body, self._end = array("q"), array("q"), array("q")
        self._cies: dict[int, tuple[int, int]] = {}
        self._count = 0

    def records(self, cie_at: NDArray[np.int64], body: NDArray[np.int64], end: NDArray[np.int64], cut: bool) -> Records:
        """The records walked so far, and the given ones."""
        import numpy as np

        cie_at = np.concatenate([np.array(self._cie_at, np.int64), cie_at])
        body = np.concatenate([np.array(self._body, np.int64), body])
        end = np.concatenate([np.array(self._end, np.int64), end])
        order = np.argsort(body, kind="stable")
        return Records(cie_at[order], body[order], end[order], self._cies, cut)

    def by_hints(self, hints: NDArray[np.int64]) -> Records | None:
        """All records, with those at ``hints`` read in bulk; None when the hints do not fit the chain of records."""
        import numpy as np

        data, size = self._section.data, len(self._section.data)
        at = np.sort(hints)
        at = at[np.diff(at, prepend=-1) != 0]
        absurd = not 0 < len(at) <= _MAX_RECORDS or int(at[0]) < 0 or int(at[-1]) > size - 8
        if absurd or not self._section.is_eh:
            return None
        view: NDArray[np.void] = np.ndarray((size - 3,), "<u4", data, strides=(1,))
        length, link = view[at].astype(np.int64), view[at + 4].astype(np.int64)
        end = at + 4 + length
        if ((length < 4) | (length == _EXTENDED) | (link == 0)).any() or int(end.max()) > size:
            return None
        begins, ends = np.append(0, end), np.append(at, size)
        cut = False
        for gap in np.flatnonzero(begins != ends).tolist():
            begin, stop = int(begins[gap]), int(ends[gap])
            outcome = self.go(begin, stop) if begin < stop else _BEYOND
            if outcome and gap < len(at):
                return None
            cut = outcome == _BEYOND
        return self.records(np.maximum(at + 4 - link, -1), at + 8, end, cut)

    def go(self, at: int, stop: int) -> int:
        """Walks from offset ``at``. 0 if it reached ``stop``, else why it ended earlier: `_AT_ZERO`, `_BEYOND`."""
        data, is_eh = self._section.data, self._section.is_eh
        pair = struct.Struct("<II").unpack_from
        cie_id = 0 if is_eh else _EXTENDED
        readable = min(stop, len(data) - 7)
        while at < readable:
            self._count += 1
            if self._count > _MAX_RECORDS:
                raise CfiError("absurdly many frame records")
            length, link = pair(data, at)
            if length == 0:
                if self._section.ends_at_zero:
                    return _AT_ZERO
                at += 4
                continue
            link_at, body, own_id = at + 4, at + 8, cie_id
            if length == _EXTENDED:
                length, link, link_at, body, own_id = _extended(data, at, is_eh)
            end = link_at + length
            if end > stop or body > end:
                return _BEYOND
            if link == own_id:
                self._cies[at] = (body, end)
            else:
                # A 64-bit pointer can have any value; a negative result never is the place of a CIE.
                cie_at = link_at - link if is_eh else link
                self._cie_at.append(cie_at if 0 <= cie_at < len(data) else -1)
                self._body.append(body)
                self._end.append(end)
            at = end
        return 0 if at == stop or stop == len(data) else _BEYOND


def _extended(data: bytes, at: int, is_eh: bool) -> tuple[int, int, int, int, int]:
    """(length, CIE pointer, its offset, offset after it, its value in a CIE) of a record in 64-bit DWARF."""
    layout = struct.Struct("<QI" if is_eh else "<QQ")
    if at + 4 + layout.size > len(data):
        raise CfiError("frame record beyond the section's end")
    length, link = layout.unpack_from(data, at + 4)
    return length, link, at + 12, at + 4 + layout.size, 0 if is_eh else (1 << 64) - 1
