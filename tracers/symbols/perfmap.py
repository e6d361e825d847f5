"""/tmp/perf-PID.map, in which JIT compilers (and ``python -X perf``) name the code that they generate.

The format is that of perf's tools/perf/Documentation/jit-interface.txt: lines ``START SIZE name``, both numbers
in hex. Anybody can write into /tmp, so the file must be a regular one owned by the process's user or root,
reached without a symbolic link, and not older than the process.
"""

from __future__ import annotations

import heapq
import os
import re
import weakref
from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ...converters.model import Frame
from ..base.budget import Limit, Seconds
from ..images.files import Root
from ..outside.reads import About

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAX_BYTES = 64 << 20
_MAX_LINE = 1 << 13
_MAX_SIZE = 1 << 30
MAX_ENTRIES = 1 << 19
"""Lines of a map that are read: the last ones, which apply."""
_MAX_KEPT, _EACH = 160 << 20, 100
"""Memory of all maps that are kept, and of an entry without a name."""
_SECONDS, _SHARE = 4.0, 0.1
"""CPU time that all maps may take, as in `Seconds`: each is read when names are needed and when its process exits."""
_GRAIN_NS = 1_000_000_000
"""Process start times are in ticks, and the clocks may differ a little."""

_LINE = re.compile(rb"(?:0x)?([0-9a-fA-F]{1,16})[ \t]+(?:0x)?([0-9a-fA-F]{1,16})[ \t]+(\S.*)")


class Code(NamedTuple):
    """A piece of generated code: addresses [start, end) and its raw name."""

    start: int
    end: int
    name: bytes


def _start(code: Code) -> int:
    return code.start


class PerfMap:
    """The entries of one map; if several cover an address, the one written last applies."""

    def __init__(self, text: bytes, stamp: tuple[int, ...] = ()) -> None:
        """``stamp``: identifies what was read."""
        self.malformed = 0
        """Lines that were skipped."""
        self.left_out = 0
        """Lines before the last `MAX_ENTRIES`."""
        self.stamp = stamp
        self._code = _flatten(self._parse(text))

    @property
    def size(self) -> int:
        """Memory taken, about."""
        return sum(_EACH + len(code.name) for code in self._code)

    def __len__(self) -> int:
        return len(self._code)

    def find(self, addresses: NDArray[np.uint64]) -> list[str | None]:
        """The raw name at each absolute address, None where there is none."""
        import numpy as np

        if not self._code:
            return [None] * len(addresses)
        starts = np.array([code.start for code in self._code], np.uint64)
        names: list[str | None] = []
        found = np.searchsorted(starts, addresses, side="right") - 1
        for address, i in zip(addresses.tolist(), found.tolist(), strict=True):
            inside = i >= 0 and address < self._code[i].end
            names.append(self._code[i].name.decode("utf-8", "backslashreplace") if inside else None)
        return names

    def name_at(self, address: int) -> str | None:
        """The raw name at one of them."""
        i = bisect_right(self._code, address, key=_start) - 1
        return (
            self._code[i].name.decode("utf-8", "backslashreplace") if i >= 0 and address < self._code[i].end else None
        )

    def _parse(self, text: bytes) -> list[Code]:
        entries = []
        lines = text.rsplit(b"\n", MAX_ENTRIES + 1)
        if len(lines) > MAX_ENTRIES + 1:
            self.left_out = lines.pop(0).count(b"\n") + 1
        for line in lines:
            match = _LINE.fullmatch(line) if len(line) <= _MAX_LINE else None
            if match is None:
                self.malformed += bool(line.strip())
                continue
            start, size = int(match[1], 16), int(match[2], 16)
            if 0 < size <= _MAX_SIZE and start + size < 1 << 64:
                entries.append(Code(start, start + size, match[3].rstrip()))
            else:
                self.malformed += 1
        return entries


class JitMaps:
    """Reads the maps of a trace's processes, as far as time and memory for all of them allow."""

    def __init__(self, kept: Limit | None = None, seconds: Seconds | None = None) -> None:
        self._kept = kept or Limit(_MAX_KEPT)
        self._seconds = seconds or Seconds(_SECONDS, _SHARE)
        self.was_refused = False
        """Whether the last one was not read because of the limits."""

    def read(self, root: Root, pid: int, uid: int, started_ns: int, before: PerfMap | None = None) -> PerfMap | None:
        """Reads as `read_perf_map` does; ``before`` if the file is as it was when that was read. None also for one that
        exceeds the limits."""
        self.was_refused = False
        opened = _open(root, pid, uid, started_ns)
        if opened is None:
            return None
        fd, about = opened
        try:
            if before is not None and before.stamp == _stamp(about):
                return before
            if self._seconds.is_over:
                self.was_refused = True
                return None
            with self._seconds.spent():
                found = _read(fd, about)
                size = found.size if found is not None else 0
        finally:
            os.close(fd)
        if found is not None:
            if not self._kept.take(size):
                self.was_refused = True
                return None
            weakref.finalize(found, self._kept.give_back, size)
        return found


def read_perf_map(root: Root, pid: int, uid: int, started_ns: int) -> PerfMap | None:
    """The map of the process whose pid in its own namespace is ``pid`` and whose user is ``uid``, in its root.

    ``started_ns`` is when it started (Unix epoch); an older file belongs to another process. None when there is no
    file that can be trusted.
    """
    return JitMaps().read(root, pid, uid, started_ns)


def _open(root: Root, pid: int, uid: int, started_ns: int) -> tuple[int, About] | None:
    """A descriptor of the map, if it can be trusted."""
    try:
        # Resolved inside the root; O_NOFOLLOW refuses a link as the last component.
        fd, about = root.find(f"/tmp/perf-{pid}.map", os.O_NOFOLLOW)
    except (OSError, ValueError):
        return None
    if about.uid not in (0, uid) or about.mtime_ns + _GRAIN_NS < started_ns:
        os.close(fd)
        return None
    return fd, about


def _stamp(about: About) -> tuple[int, ...]:
    return about.dev, about.inode, about.size, about.mtime_ns, about.ctime_ns


def _read(fd: int, about: About) -> PerfMap | None:
    try:
        # If a file is too large, its end is read: later entries override earlier ones.
        at = max(about.size - _MAX_BYTES, 0)
        text = os.pread(fd, min(about.size, _MAX_BYTES), at)
    except OSError:
        return None
    if at:
        text = text[text.find(b"\n") + 1 :]
    # A last line without a newline is still being written.
    return PerfMap(text[: text.rfind(b"\n") + 1], _stamp(about))


def jit_frame(name: str, address: int) -> Frame:
    """The frame for an entry. CPython writes ``py::FUNCTION:FILE``."""
    if name.startswith("py::"):
        function, _, file = name[4:].partition(":")
        if function:
            return Frame(function, "python", None, address, file)
    return Frame(name, "jit", None, address)


def _flatten(entries: list[Code]) -> list[Code]:
    """Entries cut so that they do not overlap, sorted by address; the last one in the list wins."""
    by_start = sorted(range(len(entries)), key=lambda i: (entries[i].start, i))
    if all(entries[a].end <= entries[b].start for a, b in pairwise(by_start)):
        return [entries[i] for i in by_start]
    edges = sorted({edge for entry in entries for edge in entry[:2]})
    result: list[Code] = []
    active: list[int] = []  # heap of -index: the last entry on top
    following = 0
    for low, high in pairwise(edges):
        while following < len(by_start) and entries[by_start[following]].start <= low:
            heapq.heappush(active, -by_start[following])
            following += 1
        while active and entries[-active[0]].end <= low:
            heapq.heappop(active)
        if active:
            result.append(Code(low, high, entries[-active[0]].name))
    return result
