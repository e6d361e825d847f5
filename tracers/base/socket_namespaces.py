"""Sockets of the network namespaces of a host: those of containers are connected to others of the same host."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from ipaddress import ip_address

from . import procfs
from .networks import namespace_of, one_of_each
from .socket_lookup import inode_of
from .socket_tables import SocketTables, tables_of

_LASTS = 0.5
"""Seconds for which the sockets of a namespace are remembered."""
_KNOWN = 5.0
"""Seconds for which it is remembered which namespaces there are."""
_NAMESPACES = 64
"""Number of namespaces that are looked at."""
_LOOKUPS = 128
"""Number of lookups in other namespaces while a table is remembered: 0.1 ms each."""

_REMEMBERED = 1 << 14
"""Connections of which it is remembered where their other ends are."""


class Namespaces:
    """Sockets by network namespace, not much older than they are asked for."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tables: dict[int, tuple[float, SocketTables]] = {}
        self._each: tuple[float, dict[int, int]] = float("-inf"), {}
        self._left = 0
        self._other_ends: dict[tuple[int, str, str], int] = {}

    def other_end(self, number: int, local: str, remote: str) -> int:
        """A process in the other namespace in which the other end of a TCP connection of this one was found when its
        sockets were looked at; 0 if there was none."""
        return self._other_ends.get((number, remote, local), 0)

    def of(self, number: int, pid: int) -> SocketTables:
        """The sockets of a namespace. ``number``: its inode; 0: it is not known. ``pid``: a process in it."""
        number = number or namespace_of(pid) or -pid
        at, tables = self._tables.get(number, (0.0, None))
        now = self._clock()
        if tables is None or now - at > _LASTS:
            self._left = _LOOKUPS
            tables = tables_of(pid, partial(self._elsewhere, number))
            self._tables = {each: kept for each, kept in self._tables.items() if now - kept[0] <= _LASTS}
            self._tables[number] = self._clock(), tables
        return tables

    def _elsewhere(self, number: int, local: str, remote: str) -> int:
        """The inode of the TCP socket with these ends in another namespace than ``number``; 0 if there is none, or more
        than one: containers of different networks may have the same addresses."""
        address = local.rpartition(":")[0].strip("[]")
        if ip_address(address).is_loopback:
            return 0
        found: dict[int, int] = {}
        for each, pid in self._all().items():
            if each == number:
                continue
            if self._left <= 0:
                break
            self._left -= 1
            if inode := inode_of(pid, local, remote):
                found[pid] = inode
        if len(found) != 1:
            return 0
        ((pid, inode),) = found.items()
        if len(self._other_ends) < _REMEMBERED:
            self._other_ends[number, local, remote] = pid
        return inode

    def _all(self) -> dict[int, int]:
        at, each = self._each
        now = self._clock()
        if now - at > _KNOWN:
            each = one_of_each((os.getpid(), *procfs.pids()), _NAMESPACES)
            self._each = now, each
        return each
