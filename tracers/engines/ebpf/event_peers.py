"""Processes at the other ends of all connections that an epoll descriptor waits for, or that a process has."""

from __future__ import annotations

import os
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
_MOST_UNIX = 64
"""Unix sockets of it whose other ends are asked for."""


class Connection(NamedTuple):
    """What is known of the connections with one other end."""

    kind: str
    address: str
    access: int
    """`objects.READS` or `WRITES`: what the other end of a pipe does; 0: anything."""


def connections_of(record: ObjectRecord, sockets: SocketTables) -> dict[str, Connection]:
    """Connections by the address of their other ends: ``socket:[4711]``, ``pipe:[4711]``; none if it has ended."""
    if record.is_several:
        links = _links(record.tgid, record.tid, _descriptors(record.tgid, record.tid))
    else:
        links = _links(record.tgid, record.tid, targets_of(info_of(record.tgid, record.tid, record.fd))[:_MOST])
    found, asked = {}, 0
    for link, inode in links:
        if link.startswith("pipe:"):
            found[link] = Connection(PIPE, "", objects.WRITES)
        elif known := sockets.socket(inode):
            other = sockets.other_end(known.protocol, known.local, known.remote) if known.remote else 0
            if other:
                found[f"socket:[{other}]"] = Connection(known.protocol.upper(), known.remote, 0)
        elif asked < _MOST_UNIX:
            asked += 1
            if other := peer_of(record.tgid, inode):
                path = sockets.paths.get(inode) or sockets.paths.get(other, "")
                found[f"socket:[{other}]"] = Connection(UNIX, path, 0)
    return found


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
        found.append(ObjectPeer(name(pid), pid, first.kind, first.address, numbers[pid].total()))
    return found


def _links(pid: int, tid: int, targets: Iterable[Target]) -> list[tuple[str, int]]:
    """Links of descriptors that are sockets or pipes, with their inodes."""
    found = []
    for target in targets:
        link = link_of(pid, tid, target.fd)
        kind, _, number = link.partition(":")
        inode = number.strip("[]")
        if kind in ("socket", "pipe") and inode.isdigit() and len(inode) < 21:
            found.append((link, int(inode)))
    return found


def _descriptors(pid: int, tid: int) -> list[Target]:
    try:
        names = os.listdir(f"/proc/{pid}/task/{tid}/fd")
    except OSError:
        return []
    return [Target(int(name), 0) for name in names[:_MOST] if name.isdigit()]
