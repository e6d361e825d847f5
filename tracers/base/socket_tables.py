"""Sockets of a network namespace: /proc/PID/net/tcp, tcp6, udp, udp6 (proc_net_tcp(5)) and unix (proc(5))."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

from ..outside.reads import head

_MOST = 1 << 20
"""Bytes of a table that are read; sockets beyond are not known."""
_DIGITS = 20
"""Digits of a number of 64 bits."""
LISTENS = 10
"""TCP_LISTEN of include/net/tcp_states.h; sockets of other families use it, too."""
_KINDS = ("tcp", "tcp6", "udp", "udp6")


class InternetSocket(NamedTuple):
    """A socket with both ends, as texts; ``remote`` is "" without one."""

    inode: int
    protocol: str
    """``tcp`` or ``udp``."""
    local: str
    remote: str
    listens: bool


class SocketTables:
    """The sockets of one network namespace."""

    def __init__(self, internet: Iterable[InternetSocket], paths: dict[int, str]) -> None:
        """``paths``: of Unix sockets that have one, by inode."""
        self._by_inode = {socket.inode: socket for socket in internet if socket.inode}
        self._by_ends = {(each.protocol, each.local, each.remote): each for each in self._by_inode.values()}
        self.paths = paths

    def socket(self, inode: int) -> InternetSocket | None:
        """The socket with this inode."""
        return self._by_inode.get(inode)

    def other_end(self, protocol: str, local: str, remote: str) -> int:
        """The inode of the socket whose ends are the other way round; 0: it is not in this namespace."""
        found = self._by_ends.get((protocol, remote, local))
        return found.inode if found else 0


def tables_of(pid: int) -> SocketTables:
    """Sockets of a process's network namespace, as far as they can be read."""
    internet = [each for kind in _KINDS for each in parse_internet(head(pid, f"net/{kind}", _MOST) or b"", kind[:3])]
    return SocketTables(internet, parse_unix(head(pid, "net/unix", _MOST) or b""))


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
        found.append(InternetSocket(inode, protocol, local, "" if remote.endswith(":0") else remote, listens))
    return found


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


def address_text(address: bytes, port: int) -> str:
    """``10.0.0.5:5432``, ``[::1]:80``; an IPv4 address that is mapped into IPv6 is told as such a one."""
    if len(address) == 4:
        return f"{IPv4Address(address)}:{port}"
    long = IPv6Address(address)
    return f"{long.ipv4_mapped}:{port}" if long.ipv4_mapped else f"[{long}]:{port}"
