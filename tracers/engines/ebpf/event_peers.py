"""Processes at the other ends of all connections that an epoll descriptor waits for, or that a process has."""

from __future__ import annotations

import os
import stat
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Set
from typing import NamedTuple

from ....converters.model.wait_objects import MOST_PEERS, PIPE, UNIX, ObjectPeer
from ...base.open_descriptors import Holder, Target, info_of, link_of, targets_of
from ...base.socket_tables import SocketTables
from ...base.unix_peers import peer_of
from ...kernel import objects
from ...kernel.objects import ObjectRecord

_MOST = 512
"""Descriptors of an object that are looked at."""
_DIGITS = 20
"""Digits of a number of 64 bits."""
_MOST_UNIX = 64
"""Unix sockets of it whose other ends are asked for."""


class Connection(NamedTuple):
    """Properties of connections with one other end."""

    kind: str
    address: str
    access: int
    """`objects.READS` or `WRITES`: what the other end of a pipe does; 0: anything."""
    serves: bool = False
    """Somebody listens at the address."""


class Connections(NamedTuple):
    """Connections of an epoll descriptor, or of a process that polls several."""

    by_link: dict[str, Connection]
    """Connections to this host, by the address of their other ends: ``socket:[4711]``, ``pipe:[4711]``."""
    of_tcp: set[tuple[str, str]]
    """Both ends of each TCP connection, to other hosts, too."""


def connections_of(record: ObjectRecord, sockets: SocketTables) -> Connections:
    """Connections of an object; none if its process has ended."""
    if record.is_several:
        links = _links(record.tgid, record.tid, _descriptors(record.tgid, record.tid))
    else:
        links = _links(record.tgid, record.tid, targets_of(info_of(record.tgid, record.tid, record.fd))[:_MOST])
    found: dict[str, Connection] = {}
    of_tcp, asked = set(), 0
    for link, inode in links:
        if link.startswith("pipe:"):
            found[link] = Connection(PIPE, "", objects.WRITES)
        elif known := sockets.socket(inode):
            other = sockets.other_end(known.protocol, known.local, known.remote) if known.remote else 0
            if known.remote and known.protocol == "tcp":
                of_tcp.add((known.local, known.remote))
            if other:
                serves = sockets.listener(known.local, known.remote) is not None
                found[f"socket:[{other}]"] = Connection(known.protocol.upper(), known.remote, 0, serves)
        elif asked < _MOST_UNIX:
            asked += 1
            if other := peer_of(record.tgid, inode):
                # Of the two ends, the one that was made by accept() has the path of the socket that listens.
                own, path = sockets.paths.get(inode, ""), sockets.paths.get(other, "")
                found[f"socket:[{other}]"] = Connection(UNIX, own or path, 0, bool(path))
    return Connections(found, of_tcp)


def peers_of(
    connections: Mapping[str, Connection],
    holders: Mapping[str, Set[Holder]],
    own: int,
    name: Callable[[int], str],
) -> list[ObjectPeer]:
    """The processes that have other ends, those with most first, without the process itself."""
    numbers: dict[int, Counter[Connection]] = defaultdict(Counter)
    for link, connection in connections.items():
        pids = {each.pid for each in holders.get(link, ()) if not connection.access or each.access & connection.access}
        for pid in pids - {own}:
            numbers[pid][connection] += 1
    most = sorted(numbers, key=lambda pid: (-numbers[pid].total(), pid))[:MOST_PEERS]
    found = []
    for pid in most:
        first = max(numbers[pid], key=lambda each: (numbers[pid][each], each))
        found.append(ObjectPeer(name(pid), pid, first.kind, first.address, numbers[pid].total(), first.serves))
    return found


def _links(pid: int, tid: int, targets: Iterable[Target]) -> list[tuple[str, int]]:
    """Links of descriptors that are sockets, or pipes' ends for reading, with their inodes."""
    found = []
    for target in targets:
        link = link_of(pid, tid, target.fd)
        kind, _, number = link.partition(":")
        inode = number.strip("[]")
        if not inode.isdigit() or len(inode) > _DIGITS:
            continue
        if kind == "socket" or (kind == "pipe" and _reads(pid, tid, target.fd)):
            found.append((link, int(inode)))
    return found


def _reads(pid: int, tid: int, fd: int) -> bool:
    try:
        return bool(os.lstat(f"/proc/{pid}/task/{tid}/fd/{fd}").st_mode & stat.S_IRUSR)
    except OSError:
        return False


def _descriptors(pid: int, tid: int) -> list[Target]:
    try:
        names = os.listdir(f"/proc/{pid}/task/{tid}/fd")
    except OSError:
        return []
    return [Target(int(name), 0) for name in names[:_MOST] if name.isdigit()]
