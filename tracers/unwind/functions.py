"""Finds where functions begin and end, from their frame descriptions.

Functions do not overlap: where descriptions do, the first one wins, and .eh_frame, which the program itself
uses, wins over .debug_frame.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from ..images.elf import ElfFile
from .cfi import Frames, read_frames
from .chain import CfiError, Section
from .sections import Sections, UnwindError, find_descriptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PT_LOAD, _PF_X = 1, 1


class Functions(NamedTuple):
    """Sorted functions without overlaps, as parallel arrays of virtual addresses."""

    pc: NDArray[np.uint64]
    end: NDArray[np.uint64]
    section: NDArray[np.int64]
    """Index into `frames`."""
    frame: NDArray[np.int64]
    """Index into the frames of that section."""
    frames: list[tuple[Section, Frames]]

    def take(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Functions:
        """Some of the functions."""
        columns = (self.pc[which], self.end[which], self.section[which], self.frame[which])
        return Functions(*columns, self.frames)


def function_bounds(elf: ElfFile, debug: ElfFile | None = None) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """(first addresses, ends) of all functions with a frame description: virtual addresses, sorted, no overlaps.

    Compilers split functions: a cold part is a range of its own. UnwindError when there are none.
    """
    found = read_functions(elf, find_descriptions(elf, debug), Counter())
    return found.pc, found.end


def read_functions(elf: ElfFile, sections: Sections, refused: Counter[str]) -> Functions:
    """The functions described in ``sections``; counts in ``refused`` what is left out.

    UnwindError when there are none.
    """
    refused.update(sections.refused)
    if not sections.found:
        raise UnwindError("; ".join(sections.refused) or "neither .eh_frame nor .debug_frame")
    functions = no_functions()
    problem = "no frame description that can be used"
    for section in sections.found:
        try:
            frames = read_frames(section)
        except CfiError as error:
            refused[str(error)] += 1
            problem = str(error)
            continue
        functions = _add(functions, _select(elf, functions, frames, refused), section, frames)
    if not len(functions.pc):
        raise UnwindError("; ".join([problem, *sections.refused]))
    return functions


def no_functions() -> Functions:
    """Functions of a file that describes none."""
    import numpy as np

    addresses, numbers = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    return Functions(addresses, addresses, numbers, numbers, [])


def count(refused: Counter[str], reason: str, which: NDArray[np.bool_]) -> None:
    """Adds the number refused for a reason, if there are any."""
    number = int(which.sum())
    if number:
        refused[reason] += number


def _select(elf: ElfFile, functions: Functions, frames: Frames, refused: Counter[str]) -> NDArray[np.int64]:
    """Indices of the ``frames`` that become functions in addition to ``functions``, sorted by address."""
    import numpy as np

    end = frames.pc + frames.size
    inside = _in_code(elf, frames.pc, end)
    count(refused, "outside of the code", ~inside)
    free = inside & ~_overlaps(functions, frames.pc, end)
    count(refused, "described before", inside & ~free)
    at = np.flatnonzero(free)
    at = at[np.argsort(frames.pc[at], kind="stable")]
    reached = np.maximum.accumulate(end[at])
    first = np.ones(len(at), bool)
    first[1:] = frames.pc[at[1:]] >= reached[:-1]
    count(refused, "described before", ~first)
    return at[first]


def _add(functions: Functions, at: NDArray[np.int64], section: Section, frames: Frames) -> Functions:
    import numpy as np

    number = len(functions.frames)
    merged = Functions(
        np.concatenate([functions.pc, frames.pc[at]]),
        np.concatenate([functions.end, frames.pc[at] + frames.size[at]]),
        np.concatenate([functions.section, np.full(len(at), number)]),
        np.concatenate([functions.frame, at]),
        [*functions.frames, (section, frames)],
    )
    return merged.take(np.argsort(merged.pc, kind="stable")) if number else merged


def _in_code(elf: ElfFile, pc: NDArray[np.uint64], end: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Whether each range is code: FDEs of functions that the linker discarded remain, at or near address 0."""
    import numpy as np

    inside = np.zeros(len(pc), bool)
    for s in elf.segments:
        if s.type == _PT_LOAD and s.flags & _PF_X and s.vaddr + s.memsz < 1 << 64:
            inside |= (pc >= np.uint64(s.vaddr)) & (end <= np.uint64(s.vaddr + s.memsz))
    return inside


def _overlaps(functions: Functions, pc: NDArray[np.uint64], end: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """True for each range that overlaps a function."""
    import numpy as np

    if not len(functions.pc):
        return np.zeros(len(pc), bool)
    at = np.searchsorted(functions.end, pc, "right")
    behind = at == len(functions.pc)
    met: NDArray[np.bool_] = ~behind & (functions.pc[np.where(behind, 0, at)] < end)
    return met
