"""Sockets of a network namespace: /proc/PID/net/tcp, tcp6, udp, udp6 (proc_net_tcp(5)) and unix (proc(5))."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from ..outside.reads import head
from .addresses import LISTENS, address_text
from .listeners import Listener, listeners_of
from .socket_lookup import inode_of

_MOST = 1 << 20
"""Bytes of a table that are read; of those beyond, only TCP sockets are found, by both of their ends."""
_DIGITS = 20
"""Digits of a number of 64 bits."""
_KINDS = ("tcp", "tcp6", "udp", "udp6")


class InternetSocket(NamedTuple):
    """A socket with both ends, as texts; ``remote`` is "" without one."""

    inode: int
    protocol: str
    """``tcp`` or ``udp``."""
    local: str
    remote: str
    listens: bool
    queued: int = 0
    """Connections that wait until a socket that listens accepts them."""


class SocketTables:
    """The sockets of one network namespace."""

    def __init__(
        self,
        internet: Iterable[InternetSocket],
        paths: dict[int, str],
        listeners: Iterable[Listener] = (),
        *,
        lookup: Callable[[str, str], int] | None = None,
    ) -> None:
        """``paths``: of Unix sockets that have one, by inode. ``listeners``: TCP sockets that listen, if their queues
        are known. ``lookup``: finds the inode of a TCP socket that is not in ``internet``, by both of its ends; None:
        there are no others."""
        self._lookup = lookup
        self._by_inode = {socket.inode: socket for socket in internet if socket.inode}
        self._by_ends = {(each.protocol, each.local, each.remote): each for each in self._by_inode.values()}
        self.paths = paths
        listening = [each for each in self._by_inode.values() if each.listens]
        told = {each.inode: Listener(each.inode, each.local, each.queued, 0) for each in listening}
        told |= {each.inode: each for each in listeners}
        self._listeners: dict[str, Listener] = {}
        for listener in told.values():
            # Of several at one address it is not known which one gets a connection.
            alone = listener.local not in self._listeners
            self._listeners[listener.local] = listener if alone else Listener(listener.inode, listener.local, 0, 0)

    def socket(self, inode: int) -> InternetSocket | None:
        """The socket with this inode."""
        return self._by_inode.get(inode)

    def other_end(self, protocol: str, local: str, remote: str) -> int:
        """The inode of the socket whose ends are the other way round; 0: it is not in this namespace."""
        found = self._by_ends.get((protocol, remote, local))
        if found is None and self._lookup and protocol == "tcp":
            return self._lookup(remote, local)
        return found.inode if found else 0

    def listener(self, local: str, remote: str) -> Listener | None:
        """The TCP socket of this namespace that listens at the address to which a socket connects; None if there is
        none, or the address may be another host's."""
        (own, _, _), (address, _, port) = local.rpartition(":"), remote.rpartition(":")
        if not own or (own != address and not address.startswith("127.")):
            return None  # the kernel connects to an address of its own from the same one: inet_addr_type() local
        everywhere = (f"[::]:{port}", *(() if address.startswith("[") else (f"0.0.0.0:{port}",)))
        return next((self._listeners[at] for at in (remote, *everywhere[::-1]) if at in self._listeners), None)


def tables_of(pid: int, elsewhere: Callable[[str, str], int] | None = None) -> SocketTables:
    """Sockets of a process's network namespace, as far as they can be read. ``elsewhere``: finds the inode of a TCP
    socket in other namespaces, by both of its ends; None: they are not looked at."""
    texts = {kind: head(pid, f"net/{kind}", _MOST) or b"" for kind in _KINDS}
    internet = [each for kind, text in texts.items() for each in parse_internet(text, kind[:3])]
    is_cut = any(len(text) >= _MOST for text in texts.values())
    lookups = ([partial(inode_of, pid)] if is_cut else []) + ([elsewhere] if elsewhere else [])

    def lookup(own: str, other: str) -> int:
        return next((found for each in lookups if (found := each(own, other))), 0)

    return SocketTables(
        internet, parse_unix(head(pid, "net/unix", _MOST) or b""), listeners_of(pid), lookup=lookup if lookups else None
    )


def parse_internet(text: bytes, protocol: str) -> list[InternetSocket]:
    """The lines of a table; malformed ones, and one that is cut, are left out."""
    found = []
    for line in text.split(b"\n")[1:]:
        words = line.split()
        if len(words) < 10:
            continue
        try:
            local, remote = _address(words[1]), _address(words[2])
            state, inode = int(words[3], 16), int(words[9])
        except (ValueError, struct.error):
            continue
        listens = protocol == "tcp" and state == LISTENS
        queued = _queued(words[4]) if listens else 0
        found.append(InternetSocket(inode, protocol, local, "" if remote.endswith(":0") else remote, listens, queued))
    return found


def _queued(text: bytes) -> int:
    """``00000000:00000005``: the send and the receive queue."""
    try:
        return int(text.partition(b":")[2], 16)
    except ValueError:
        return 0


def _address(text: bytes) -> str:
    """``0100007F:1F90``: words in the machine's order of bytes."""
    address, _, port = text.partition(b":")
    words = [int(address[i : i + 8], 16) for i in range(0, len(address), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    if len(packed) not in (4, 16):
        raise ValueError("not an address")
    return address_text(packed, int(port, 16))


def parse_unix(text: bytes) -> dict[int, str]:
    """Paths by inode; an abstract one begins with ``@``."""
    found = {}
    for line in text.split(b"\n")[1:]:
        words = line.split(None, 7)
        if len(words) == 8 and words[6].isdigit() and len(words[6]) <= _DIGITS:
            found[int(words[6])] = os.fsdecode(words[7])
    return found
