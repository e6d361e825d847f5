"""Bulk reader for the records of .eh_frame and .debug_frame.

Layouts: DWARF 5, 6.4.1; Linux Standard Base 5, 10.6 (.eh_frame, its augmentations and pointer encodings).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from .chain import CfiError, Records, Section, walk
from .leb import LebError, sleb, uleb
from .rules import REG_RA

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAX_CIES = 1 << 17
_MAX_ALIGN = 1 << 16
PE_SIZES = {0x00: (8, False), 0x02: (2, False), 0x03: (4, False), 0x04: (8, False), 0x0A: (2, True), 0x0B: (4, True),
             0x0C: (8, True)}  # fmt: skip
"""Low nibble of a pointer encoding (DW_EH_PE_*) to (size in bytes, whether signed)."""
PE_ABSOLUTE, PE_PCREL, _PE_OMIT = 0x00, 0x10, 0xFF


class Cie(NamedTuple):
    """The part of a common information entry that its frame descriptions share."""

    code_align: int
    data_align: int
    begin: int
    end: int
    """Bounds of its instructions, as offsets into the section."""
    encoding: int
    """DW_EH_PE_* encoding of an FDE's addresses."""
    has_data: bool
    """Whether an FDE has augmentation data."""


class Frames(NamedTuple):
    """Frame descriptions (FDEs) as parallel arrays."""

    pc: NDArray[np.uint64]
    """Virtual address of the first byte that the FDE describes."""
    size: NDArray[np.uint64]
    """Number of bytes that it describes; never 0, never beyond 2^64."""
    cie: NDArray[np.int64]
    """Index into `cies`."""
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    """Bounds of the instructions, as offsets into the section."""
    cies: list[Cie]
    refused: Counter[str]
    """FDEs left out, by reason."""


def read_frames(section: Section) -> Frames:
    """All readable FDEs of a section, in its order. CfiError when the section as a whole makes no sense."""
    import numpy as np

    records = walk(section)
    refused: Counter[str] = Counter()
    if records.cut:
        refused["records beyond the section's end"] += 1
    places, which = np.unique(records.cie_at, return_inverse=True)
    cies, index_of = _read_cies(section, records, places.tolist())
    cie = index_of[which]
    body, end = records.body, records.end
    known = cie >= 0
    _refuse(refused, "common information entry missing or not understood", ~known)
    cie, body, end = cie[known], body[known], end[known]
    pc, size, begin = _read_ranges(section, cies, cie, body, end)
    good = (begin >= 0) & (begin <= end)
    _refuse(refused, "record cut short", ~good)
    absurd = good & (pc + size < pc)
    _refuse(refused, "absurd addresses", absurd)
    keep = good & ~absurd & (size > 0)
    return Frames(pc[keep], size[keep], cie[keep], begin[keep], end[keep], cies, refused)


def _refuse(refused: Counter[str], reason: str, which: NDArray[np.bool_]) -> None:
    count = int(which.sum())
    if count:
        refused[reason] += count


def _read_cies(section: Section, records: Records, places: list[int]) -> tuple[list[Cie], NDArray[np.int64]]:
    """The distinct CIEs at ``places``, and for each place its index among them, -1 when it is unusable."""
    import numpy as np

    if len(places) > _MAX_CIES:
        raise CfiError("absurdly many common information entries")
    cies: list[Cie] = []
    by_content: dict[bytes, int] = {}
    found = np.full(len(places), -1, np.int64)
    for i, place in enumerate(places):
        if place not in records.cies:
            continue
        begin, end = records.cies[place]
        content = section.data[begin:end]
        if content not in by_content:
            cie = _read_cie(content, begin, section.is_eh)
            by_content[content] = -1 if cie is None else len(cies)
            cies += [cie] if cie is not None else []
        found[i] = by_content[content]
    return cies, found


def _read_cie(content: bytes, place: int, is_eh: bool) -> Cie | None:
    """The CIE whose version field is at ``place``; None when it is unusable."""
    try:
        version = content[0]
        zero = content.index(b"\0", 1)
        augmentation, at = content[1:zero], zero + 1
        if version not in (1, 3, 4) or (version == 4 and is_eh):
            return None
        if version == 4:
            if content[at : at + 2] != b"\x08\x00":  # size of an address, size of a segment selector
                return None
            at += 2
        code_align, at = uleb(content, at)
        data_align, at = sleb(content, at)
        return_register, at = (content[at], at + 1) if version == 1 else uleb(content, at)
        encoding, has_data = PE_ABSOLUTE, augmentation.startswith(b"z")
        if has_data:
            size, at = uleb(content, at)
            encoding = _fde_encoding(augmentation[1:], content[at : at + size])
            at += size
        elif augmentation:
            return None
        if at > len(content) or return_register != REG_RA or max(code_align, abs(data_align)) > _MAX_ALIGN:
            return None
    except (LebError, IndexError, ValueError, CfiError):
        return None
    return Cie(code_align, data_align, place + at, place + len(content), encoding, has_data)


def _fde_encoding(letters: bytes, data: bytes) -> int:
    """The argument of R, by the Linux Standard Base, 10.6.1.1.1."""
    at, encoding = 0, PE_ABSOLUTE
    for letter in letters:
        if letter == ord("R"):
            encoding = data[at]
            at += 1
        elif letter == ord("L"):
            at += 1
        elif letter == ord("P"):
            kind = data[at] & 0x0F
            if data[at] != _PE_OMIT:
                if kind not in PE_SIZES or data[at] & 0x70 == 0x50:  # DW_EH_PE_aligned
                    raise CfiError
                at += PE_SIZES[kind][0]
            at += 1
        elif letter not in b"SBG":  # signal frame; the others belong to other machines
            raise CfiError
    return encoding


def _read_ranges(
    section: Section, cies: list[Cie], cie: NDArray[np.int64], body: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]]:
    """(first address, size, offset of the instructions) of FDEs; the offset is -1 where an FDE is unusable."""
    import numpy as np

    pc, size = np.zeros(len(cie), np.uint64), np.zeros(len(cie), np.uint64)
    begin = np.full(len(cie), -1, np.int64)
    shapes = np.array([c.encoding | c.has_data << 8 for c in cies], np.int64)
    shape_of = shapes[cie] if len(cies) else np.zeros(0, np.int64)
    for shape in np.flatnonzero(np.bincount(shape_of)).tolist():
        encoding, relative = shape & 0x0F, shape & 0xF0
        if encoding not in PE_SIZES or relative not in (PE_ABSOLUTE, PE_PCREL):
            continue
        width, signed = PE_SIZES[encoding]
        which = np.flatnonzero((shape_of == shape) & (body + 2 * width <= end))
        at = body[which]
        pc[which] = _gather(section.data, at, width, signed)
        if relative:
            pc[which] += at.astype(np.uint64) + np.uint64(section.vaddr)
        size[which] = _gather(section.data, at + width, width, False)
        begin[which] = at + 2 * width
        if shape >> 8:
            begin[which] = _behind_data(section.data, begin[which], end[which])
    return pc, size, begin


def _gather(data: bytes, at: NDArray[np.int64], width: int, signed: bool) -> NDArray[np.uint64]:
    """Numbers of ``width`` bytes at arbitrary offsets, modulo 2^64."""
    import numpy as np

    if not len(at):
        return np.zeros(0, np.uint64)
    dtype = np.dtype(f"<{'i' if signed else 'u'}{width}")
    view: NDArray[np.void] = np.ndarray((len(data) - width + 1,), dtype, data, strides=(1,))
    numbers: NDArray[np.uint64] = view[at].astype(np.int64 if signed else np.uint64).view(np.uint64)
    return numbers


def _behind_data(data: bytes, at: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Offsets after the augmentation data (its size, then that many bytes); -1 where that is past the end."""
    import numpy as np

    octets = np.frombuffer(data, np.uint8)
    at, size = at.copy(), np.zeros(len(at), np.int64)
    more, done = np.ones(len(at), bool), np.zeros(len(at), bool)
    for shift in range(0, 28, 7):
        more &= at < end
        byte = octets[np.where(more, at, 0)].astype(np.int64)
        size += np.where(more, (byte & 0x7F) << shift, 0)
        at += more
        last = more & (byte < 0x80)
        more &= ~last
        done |= last
        at[last] += size[last]
        if not more.any():
            break
    behind: NDArray[np.int64] = np.where(done & (at <= end), at, -1)
    return behind
