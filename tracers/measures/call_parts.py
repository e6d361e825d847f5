"""What calls of functions made: ioctls and copies, as bpf/calls.bpf.c counts them."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Sequence

from ...converters.model.call_ioctls import CallIoctls
from ...converters.model.copies import Copies
from ..apis import copies
from ..kernel.bpfobject import Object
from ..kernel.sum_table import SumTable
from .open_calls import Part
from .probed import Probe

KEY = struct.Struct("<6I")
"""Thread, process, life, function, number of the ioctl's target or direction of the copy, nothing."""
IOCTL = struct.Struct("<4Q")
"""Count, total, blocked, runnable."""
COPY = struct.Struct("<6Q")
"""Count, bytes, copies of an unknown size, total, blocked, runnable."""

_Names = Callable[[int], tuple[str, str]]


class CallParts:
    """The tables of what calls made. Read once per interval."""

    def __init__(self) -> None:
        self._tables: dict[str, SumTable] = {}
        self._ioctls: list[tuple[int, int, int, Sequence[int]]] = []
        """Process, function, number, figures of `IOCTL`."""
        self._copies: list[tuple[int, int, int, Sequence[int]]] = []
        """Process, function, direction, figures of `COPY`."""

    def open(self, loaded: Object, entries: int) -> None:
        self._tables = {
            "ioctls": SumTable(loaded, "call_ioctls", IOCTL.size, entries, key_size=KEY.size),
            "copies": SumTable(loaded, "call_copies", COPY.size, entries, key_size=KEY.size),
        }

    def read(self, slot: int) -> None:
        """Takes out the sums of an interval."""
        self._ioctls = self._drained("ioctls", IOCTL, slot)
        self._copies = self._drained("copies", COPY, slot)

    def _drained(self, name: str, layout: struct.Struct, slot: int) -> list[tuple[int, int, int, Sequence[int]]]:
        keys, values = self._tables[name].drain(slot)
        found = zip(KEY.iter_unpack(keys), layout.iter_unpack(values), strict=True)
        return [(tgid, function, number, figures) for (_, tgid, _, function, number, _), figures in found]

    def forget(self) -> None:
        self._ioctls, self._copies = [], []

    def close(self) -> None:
        for table in self._tables.values():
            table.close()

    def ioctls(self, functions: Sequence[Probe], described: _Names, going_on: Iterable[Part]) -> list[CallIoctls]:
        """By process, function and command. ``going_on``: the calls that had not ended. Processes have no name yet."""
        found: dict[tuple[int, int, tuple[str, str]], CallIoctls] = {}

        def entry(tgid: int, function: int, number: int) -> CallIoctls:
            probe, names = functions[function], described(number)
            return found.setdefault(
                (tgid, function, names), CallIoctls(probe.name, os.path.basename(probe.path), tgid, "", *names)
            )

        for tgid, function, number, (count, total, blocked, runnable) in self._ioctls:
            one = entry(tgid, function, number)
            one.count += count
            one.total += total
            one.blocked += blocked
            one.runnable += runnable
        for part in going_on:
            if part.ioctl:
                one = entry(part.tgid, part.function, part.ioctl.number)
                one.open_count += 1
                one.open_time += part.ioctl_time
        return list(found.values())

    def copies(self, functions: Sequence[Probe]) -> list[Copies]:
        """By process, function and direction. Processes have no name yet."""
        found: dict[tuple[int, int, int], Copies] = {}
        for tgid, function, direction, (count, size, unknown, total, blocked, runnable) in self._copies:
            probe = functions[function]
            is_async = copies.is_async(probe.name)
            names = probe.name, os.path.basename(probe.path), tgid, "", copies.DIRECTIONS[direction], is_async
            one = found.setdefault((tgid, function, direction), Copies(*names))
            one.count += count
            one.bytes += size
            one.unknown += unknown
            one.total += total
            one.blocked += blocked
            one.runnable += runnable
        return list(found.values())
