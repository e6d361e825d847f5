"""Executable mappings of a process: /proc/PID/maps, and the address space that mmap events build on it."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..outside.reads import maps

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

REMAPPED = "[remapped]"
"""Path of a range that belonged first to one file, then to another, so that its addresses cannot be attributed."""

MOST = 1 << 14
"""Executable mappings of a process that are kept: those of a process with many hundred libraries are some thousand."""
_DELETED = " (deleted)"

# proc(5): start-end perms offset major:minor inode    path. Only lines with x matter.
_LINE = re.compile(
    rb"^([0-9a-f]{1,16})-([0-9a-f]{1,16}) [r-][w-]x[ps] ([0-9a-f]{1,16}) "
    rb"([0-9a-f]{1,8}):([0-9a-f]{1,8}) (\d{1,20}) *(.*)$",
    re.MULTILINE,
)


class Mapping(NamedTuple):
    """One executable mapping: addresses [start, end) show the file from byte ``offset`` on.

    ``path`` is as the kernel gives it to the process, with `` (deleted)`` where the kernel added it, "" for anonymous
    memory; ``dev`` is an st_dev; ``build_id`` is lower-case hex if the source of the mapping has one (perf's MMAP2
    records can), else "".
    """

    start: int
    end: int
    offset: int = 0
    path: str = ""
    dev: int = 0
    inode: int = 0
    build_id: str = ""
    user: int | None = None
    """User of the process, if only the build-id is known and the file is not the administrator's: anybody can write a
    file with the build-id of another one, and it stands for that only in processes of this user."""

    @property
    def file_path(self) -> str:
        """The path without the kernel's `` (deleted)``."""
        return self.path.removesuffix(_DELETED)

    @property
    def is_file(self) -> bool:
        """Whether it maps a file, as opposed to anonymous memory, [vdso] and the like."""
        return self.path.startswith("/") and bool(self.inode or self.build_id)

    @property
    def key(self) -> tuple[int, int] | str:
        """Identifies its file: (dev, inode), or the build-id where only that is known."""
        if self.inode:
            return self.dev, self.inode
        return self.build_id if self.user is None else f"{self.build_id} of {self.user}"


def parse_maps(text: bytes) -> list[Mapping]:
    """The executable mappings in ``text``, the content of a /proc/PID/maps; malformed lines are left out."""
    mappings = []
    for start, end, offset, major, minor, inode, path in _LINE.findall(text):
        low, high = int(start, 16), int(end, 16)
        if low >= high:
            continue
        # The kernel escapes newlines and nothing else.
        name = os.fsdecode(path.replace(b"\\012", b"\n"))
        dev = os.makedev(int(major, 16) & 0xFFF, int(minor, 16) & 0xFFFFF)
        mappings.append(Mapping(low, high, int(offset, 16), name, dev, int(inode)))
    return mappings


def read_maps(pid: int) -> list[Mapping]:
    """The executable mappings of a live process. OSError when it has exited, when we may not read them, or
    when it does not answer."""
    return parse_maps(maps(pid, only_code=True))


def same_code(old: Mapping, new: Mapping) -> bool:
    """Whether an address in both refers to the same byte of the same file."""
    if not (old.is_file and new.is_file):
        return old.path == new.path and old.is_file == new.is_file
    if old.start - old.offset != new.start - new.offset:
        return False
    if old.build_id and new.build_id:
        return old.build_id == new.build_id
    if old.inode and new.inode:
        return (old.dev, old.inode) == (new.dev, new.inode)
    return old.file_path == new.file_path


class AddressSpace:
    """Mappings that do not overlap, by address. A later one replaces what it covers, as with mmap."""

    def __init__(self, mappings: Iterable[Mapping] = ()) -> None:
        self._mappings: list[Mapping] = []
        self._starts: list[int] = []
        self._is_shared = False
        """Whether a copy has the same lists."""
        self.left_out = 0
        """Mappings that were not added, because there are `MOST`."""
        for mapping in mappings:
            self.map(mapping)

    def __iter__(self) -> Iterator[Mapping]:
        return iter(self._mappings)

    def __len__(self) -> int:
        return len(self._mappings)

    def copy(self) -> AddressSpace:
        """Another address space with the same mappings (which are shared: they never change)."""
        other = AddressSpace()
        other._mappings, other._starts = self._mappings, self._starts
        # Most forked processes map nothing more: the lists are copied by the one that changes them.
        self._is_shared = other._is_shared = True
        return other

    def find(self, address: int) -> Mapping | None:
        """The mapping that contains ``address``."""
        i = bisect_right(self._starts, address) - 1
        if i >= 0 and address < self._mappings[i].end:
            return self._mappings[i]
        return None

    def overlapping(self, start: int, end: int) -> list[Mapping]:
        """The mappings that share an address with [start, end)."""
        first, last = self._span(start, end)
        return self._mappings[first:last]

    def map(self, mapping: Mapping) -> None:
        """Adds ``mapping`` and cuts away what it covers. An empty one is ignored."""
        if mapping.start >= mapping.end:
            return
        first, last = self._span(mapping.start, mapping.end)
        pieces = [mapping]
        if first < last:
            left, right = self._mappings[first], self._mappings[last - 1]
            if left.start < mapping.start:
                pieces.insert(0, left._replace(end=mapping.start))
            if right.end > mapping.end:
                pieces.append(right._replace(start=mapping.end, offset=right.offset + mapping.end - right.start))
        if len(pieces) > last - first and len(self._mappings) >= MOST:
            self.left_out += 1
            return
        if self._is_shared:
            self._mappings, self._starts = self._mappings.copy(), self._starts.copy()
            self._is_shared = False
        self._mappings[first:last] = pieces
        self._starts[first:last] = [piece.start for piece in pieces]

    def map_unless_other(self, mapping: Mapping) -> None:
        """Maps as :meth:`map` does, but where another file was mapped before, the range becomes ``[remapped]``.

        The stacks of an address space carry no time: an address that belonged first to one file, then to another,
        cannot be attributed to either.
        """
        others = [old for old in self.overlapping(mapping.start, mapping.end) if not same_code(old, mapping)]
        self.map(mapping)
        for old in others:
            start, end = max(old.start, mapping.start), min(old.end, mapping.end)
            self.map(Mapping(start, end, 0, REMAPPED))

    def map_in_gaps(self, mapping: Mapping) -> None:
        """Adds only those parts of ``mapping`` where nothing is mapped."""
        start = mapping.start
        for old in self.overlapping(mapping.start, mapping.end):
            self._map_part(mapping, start, old.start)
            start = old.end
        self._map_part(mapping, start, mapping.end)

    def bulk_find(self, addresses: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Index, in iteration order, of the mapping of each address, -1 where there is none."""
        import numpy as np

        if not self._mappings:
            return np.full(len(addresses), -1, np.intp)
        starts = np.array(self._starts, np.uint64)
        ends = np.array([mapping.end for mapping in self._mappings], np.uint64)
        found = np.searchsorted(starts, addresses, side="right") - 1
        # Index -1 wraps to the last mapping, whose end may well be above: the sign check excludes it.
        inside = (found >= 0) & (addresses < ends[found])
        return np.where(inside, found, -1)

    def _map_part(self, mapping: Mapping, start: int, end: int) -> None:
        if start < end:
            self.map(mapping._replace(start=start, end=end, offset=mapping.offset + start - mapping.start))

    def _span(self, start: int, end: int) -> tuple[int, int]:
        first = bisect_right(self._starts, start) - 1
        if first < 0 or self._mappings[first].end <= start:
            first += 1
        last = first
        while last < len(self._mappings) and self._mappings[last].start < end:
            last += 1
        return first, last
