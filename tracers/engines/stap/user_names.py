"""Names the frames that SystemTap tells by the symbols of the files themselves, as the other engines do.

SystemTap takes the nearest symbol below an address, also where that symbol's function has ended before: in a program
without a full symbol table that is another function. What it tells still says where in the file the address is: so many
bytes behind that symbol. Each file gets a range of an address space that no process has, and the symboliser names what
is there.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from ....converters.model import Frame
from ....converters.readers.stap.stacks import UserPlace
from ...images.files import HOST
from ...images.maps import Mapping as Mapped
from ...images.maps import read_maps
from ...images.symtab import Symbol
from ...symbols.objects import ObjectFile
from ...symbols.one import Process
from ...symbols.process import ProcessSpaces
from ...symbols.symboliser import Symboliser

_RANGE = 1 << 40
"""Addresses that each file has."""
_NOWHERE = 0
_DELETED = " (deleted)"


class _Found(NamedTuple):
    address: int
    is_assembler: bool
    """SystemTap's name is the best if the symboliser has none."""


class FileNames:
    """See `UserNames` of the reader. Files are those that the processes have mapped, or had when they ended."""

    def __init__(self, pids: Iterable[int], began_wall: int, keep: Collection[str] = ()) -> None:
        """``began_wall``: of the trace, Unix epoch ns. ``keep``: functions whose names stay as SystemTap tells them."""
        self._pids, self._began, self._keep = pids, began_wall, keep

    def frames(self, stacks: Sequence[Sequence[UserPlace]]) -> list[list[Frame | None]]:
        """The frames of each stack, innermost first; None: what SystemTap tells is the best there is."""
        spaces = ProcessSpaces()
        try:
            space = Process(0, 0, exited=True)
            number = spaces.add(space)
            found = self._find(spaces, space, set(chain.from_iterable(stacks)))
            nowhere = _Found(_NOWHERE, False)
            requests = [(number, 0, tuple(found.get(place, nowhere).address for place in stack)) for stack in stacks]
            named = Symboliser(spaces).user_stacks(requests)
        finally:
            spaces.close()
        return [
            [
                None if place not in found or (found[place].is_assembler and frame.name.startswith("[")) else frame
                for place, frame in zip(stack, reversed(frames), strict=True)
            ]
            for stack, frames in zip(stacks, named, strict=True)
        ]

    def _find(self, spaces: ProcessSpaces, space: Process, places: set[UserPlace]) -> dict[UserPlace, _Found]:
        """Maps the files into ``space``, which no process has; where the places are there, as far as that is known."""
        by_path: dict[str, list[UserPlace]] = {}
        for place in places:
            by_path.setdefault(place.path, []).append(place)
        found: dict[UserPlace, _Found] = {}
        for number, (path, mapping, file) in enumerate(self._files(spaces, by_path), 1):
            base = number * _RANGE
            if base + _RANGE >= 1 << 63:
                break
            space.space.map(mapping._replace(start=base, end=base + _RANGE, offset=0))
            symbols = file.named({place.symbol for place in by_path[path]} - {""} - set(self._keep))
            for place in by_path[path]:
                symbol = _symbol(symbols.get(place.symbol, ()), place.size)
                offset = _offset(file, place, symbol)
                if offset is not None and offset < _RANGE:
                    found[place] = _Found(base + offset, _is_assembler(file, symbol, place.offset))
        return found

    def _files(self, spaces: ProcessSpaces, paths: Collection[str]) -> Iterator[tuple[str, Mapped, ObjectFile]]:
        """Files that can be read. A path at which processes have different files stands for none of them."""
        mapped = self._mapped({path.removesuffix(_DELETED) for path in paths if path.startswith("/")})
        for path in paths:
            if not path.startswith("/"):
                continue
            users = mapped.get(path.removesuffix(_DELETED)) or self._left(path)
            if len(users) != 1:
                continue
            ((pid, mapping),) = users.values()
            file = spaces.file_of(spaces.add(Process(pid, pid)), mapping)
            if file is not None and file.elf() is not None:
                yield path, mapping, file

    def _mapped(self, paths: Collection[str]) -> Mapping[str, dict[object, tuple[int, Mapped]]]:
        """Different files at each path that living processes have mapped, each with one of its processes."""
        found: dict[str, dict[object, tuple[int, Mapped]]] = {}
        for pid in self._pids:
            try:
                mappings = read_maps(pid)
            except OSError:
                continue
            for mapping in mappings:
                if mapping.is_file and mapping.file_path in paths:
                    found.setdefault(mapping.file_path, {}).setdefault(mapping.key, (pid, mapping))
        return found

    def _left(self, path: str) -> dict[object, tuple[int, Mapped]]:
        """A file that no living process has mapped, if it is as it was when the trace began."""
        try:
            fd, about = HOST.find(path)
        except (OSError, ValueError):
            return {}
        os.close(fd)
        if about.ctime_ns > self._began:
            return {}
        return {path: (0, Mapped(0, _RANGE, 0, path, about.dev, about.inode))}


def _symbol(symbols: Sequence[Symbol], size: int) -> Symbol | None:
    """Symbol, of those with equal names, to which SystemTap's size fits; None for several, or none."""
    if len(symbols) > 1:
        symbols = [each for each in symbols if max(each.next - each.start, 0) == size]
    return symbols[0] if len(symbols) == 1 else None


def _offset(file: ObjectFile, place: UserPlace, symbol: Symbol | None) -> int | None:
    """Offset in the file; None: not known."""
    elf = file.elf()
    if elf is None:
        return None
    if symbol:
        return elf.to_offset(symbol.start + place.offset)
    begin = None if place.symbol else elf.mapped_from(place.size)
    return elf.to_offset(begin + place.offset) if begin is not None else None


def _is_assembler(file: ObjectFile, symbol: Symbol | None, offset: int) -> bool:
    """Whether a symbol has no size, and no function begins between it and the code at ``offset`` behind it."""
    if symbol is None or symbol.start != symbol.end:
        return False
    import numpy as np

    (start,) = file.starts(np.array([symbol.start + max(offset - 1, 0)], np.uint64))
    return start is None or start <= symbol.start
