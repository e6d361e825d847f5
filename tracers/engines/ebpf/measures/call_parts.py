"""Ioctls and copies that calls of functions made, as bpf/include/call_ioctls.bpf.h and call_copies.bpf.h count them."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from .....converters.model.call_ioctls import CallIoctls
from .....converters.model.copies import Copies
from ....kernel.bpfobject import Object
from ....kernel.records import Origin
from ....kernel.sum_table import SumTable
from ....probe_targets import copies
from .open_calls import Part
from .probed import Probe

if TYPE_CHECKING:
    from .call_sums import PartSums
    from .totals import Moved

KEY = struct.Struct("<6I")
"""Thread, process, life, function, number of the ioctl's target or direction of the copy, nothing."""
IOCTL = struct.Struct("<4Q")
"""Count, total, blocked, runnable."""
COPY = struct.Struct("<6Q")
"""Count, bytes, copies of an unknown size, total, blocked, runnable."""
_IOCTL_TOTAL, _COPY_TOTAL = 1, 3
"""Places of figures."""
OTHER_FUNCTIONS = "[other functions]", "[other files]"
"""Name and file of calls that were added up because there were too many kinds of them."""

_Names = Callable[[int], tuple[str, str]]


class CallParts:
    """The tables of what calls made, and what was taken out of them."""

    def __init__(self) -> None:
        self._tables: dict[str, SumTable] = {}
        self._taken: dict[str, PartSums] = {}

    def open(self, loaded: Object, entries: int) -> None:
        self._tables = {
            "ioctls": SumTable(loaded, "call_ioctls", IOCTL.size, entries, key_size=KEY.size),
            "copies": SumTable(loaded, "call_copies", COPY.size, entries, key_size=KEY.size),
        }
        self._taken = {}

    def _sums(self) -> dict[str, PartSums]:
        if not self._taken:
            # It needs numpy, which takes longer to import than the probes to attach.
            from .call_sums import PartSums

            self._taken = {
                "ioctls": PartSums(IOCTL.size // 8, _IOCTL_TOTAL),
                "copies": PartSums(COPY.size // 8, _COPY_TOTAL),
            }
        return self._taken

    def drain(self, slot: int) -> None:
        """Takes out what the tables of an interval hold; programs may be running."""
        for name, sums in self._sums().items():
            sums.add(*self._tables[name].drain(slot))

    def move(self, moved: Moved) -> None:
        """Rows of these lives get other ids."""
        for sums in self._sums().values():
            sums.move(moved)

    def clear(self) -> None:
        """The next interval begins."""
        for sums in self._sums().values():
            sums.clear()

    def close(self) -> None:
        for table in self._tables.values():
            table.close()

    def ioctls(
        self, functions: Sequence[Probe], described: _Names, going_on: Iterable[Part]
    ) -> list[tuple[Origin, CallIoctls]]:
        """Ioctls by thread, function and command. ``going_on``: the calls that had not ended. Processes have no name
        yet. What was taken out is forgotten."""
        found = []
        for origin, function, number, (count, total, blocked, runnable) in self._sums()["ioctls"].sums():
            names = *_names(functions, function), origin.tgid, "", *described(number)
            found.append((origin, CallIoctls(*names, count, total, blocked, runnable)))
        for part in going_on:
            if part.ioctl:
                names = *_names(functions, part.function), part.tgid, "", *described(part.ioctl.number)
                found.append((part.origin, CallIoctls(*names, open_count=1, open_time=part.ioctl_time)))
        return found

    def copies(self, functions: Sequence[Probe]) -> list[tuple[Origin, Copies]]:
        """Copies by thread, function and direction. Processes have no name yet. What was taken out is forgotten."""
        found = []
        for origin, function, direction, figures in self._sums()["copies"].sums():
            name, library = _names(functions, function)
            # Those that were added up can be of any direction, and some of them asynchronous.
            where = copies.DIRECTIONS[direction if function >= 0 else -1]
            is_async = function < 0 or copies.is_async(name)
            found.append((origin, Copies(name, library, origin.tgid, "", where, is_async, *figures)))
        return found


def _names(functions: Sequence[Probe], function: int) -> tuple[str, str]:
    """Names of the function and of its library; ``function``: its number, or `call_sums.OTHER`."""
    name, path = functions[function][:2] if function >= 0 else OTHER_FUNCTIONS
    return name, os.path.basename(path)
