"""Searches a process's memory for functions: objects whose type is that of code objects.

Most functions of a process run now and then only, and are on no stack when a trace begins. Their code objects are in
its anonymous memory; what is not present of that is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..outside.reads import Memory, maps, pagemap
from .functions import Function, Inside, function_at, text_at
from .memory import memory_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LINE = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) rw.p [0-9a-f]+ 00:00 0 *(\S*)", re.MULTILINE)
_NOT_HEAPS = (b"[stack", b"[vvar", b"[vdso")
_PAGE = 4096
_PIECE = 1 << 22
"""Bytes that are read at once."""
_PRESENT = 63
"""Bit of an entry of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst)."""
_MOST = 16 << 30
"""Bytes that are looked at in a process."""


class Found(NamedTuple):
    """A function, and where its code object is."""

    code: int
    function: Function


def search(pid: int, inside: Inside, is_wanted: Callable[[str], bool]) -> Iterator[list[Found]]:
    """The functions of the files, by the names that their code objects have, that ``is_wanted``: a list for each piece
    of the process's memory, often empty. OSError if the process is gone."""
    files = _Files(inside, is_wanted)
    left = _MOST
    with memory_of(pid) as memory:
        for start, end in _present(pid, _heaps(pid)):
            yield list(_in_piece(memory, start, end, files))
            left -= end - start
            if left <= 0:
                return


def _heaps(pid: int) -> list[tuple[int, int]]:
    """Anonymous memory that is the process's own; small mappings first."""
    lines = _LINE.findall(maps(pid, only_code=False))
    found = [(int(start, 16), int(end, 16)) for start, end, name in lines if not name.startswith(_NOT_HEAPS)]
    return sorted(found, key=lambda heap: heap[1] - heap[0])


def _present(pid: int, heaps: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Parts of the heaps that are in memory."""
    import numpy as np

    for start, end in heaps:
        for first in range(start, end, _PIECE):
            pages = (min(first + _PIECE, end) - first) // _PAGE
            entries = np.frombuffer(pagemap(pid, first // _PAGE * 8, 8 * pages), np.uint64)
            present = np.zeros(len(entries) + 2, np.int8)
            present[1:-1] = entries >> np.uint64(_PRESENT)
            edges = np.flatnonzero(np.diff(present)).tolist()
            yield from ((first + a * _PAGE, first + b * _PAGE) for a, b in zip(edges[::2], edges[1::2], strict=True))


class _Files:
    """Files that are wanted, by the addresses of their names."""

    def __init__(self, inside: Inside, is_wanted: Callable[[str], bool]) -> None:
        self.inside, self.is_wanted = inside, is_wanted
        self._known: dict[int, bool] = {}

    def has(self, memory: Memory, address: int) -> bool:
        """OSError if the name is not there."""
        if address not in self._known:
            self._known[address] = self.is_wanted(text_at(memory, self.inside, address))
        return self._known[address]


def _in_piece(memory: Memory, start: int, end: int, files: _Files) -> Iterator[Found]:
    import numpy as np

    inside = files.inside
    try:
        words = np.frombuffer(memory.read(start, end - start), np.uint64)
    except OSError:
        return  # unmapped meanwhile
    for place, name in _candidates(words, inside):
        code = start + 8 * place
        try:
            name = name or memory.word(code + inside.layout.code_file)
            function = function_at(memory, inside, code) if files.has(memory, name) else None
        except OSError:
            continue
        if function and files.is_wanted(function.file):
            yield Found(code, function)


def _candidates(words: NDArray[np.uint64], inside: Inside) -> Iterator[tuple[int, int]]:
    """Candidates: where the type of code objects is in the second word of an object, and the address of its file's
    name; 0 if that is in the next piece."""
    import numpy as np

    places = np.flatnonzero(words[1:] == np.uint64(inside.code_type))
    places = places[places % 2 == 0]  # objects are at multiples of 16 bytes
    at = places + inside.layout.code_file // 8
    known = at < len(words)
    files = np.zeros(len(places), np.uint64)
    files[known] = words[at[known]]
    return zip(places.tolist(), files.tolist(), strict=True)
