"""Objects of waits: names of files and sockets while their processes live, and who has the other ends."""

from __future__ import annotations

import os
import stat
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import cache

from ....converters.model.wait_objects import (
    EVENTS,
    MEMORY,
    MOST_ENDS,
    OTHER,
    READS,
    SERVED,
    TCP,
    UDP,
    UNIX,
    WRITES,
    ObjectEnd,
    WaitObject,
    label,
)
from ...base import fuse_servers, procfs
from ...base.filesystems import ANONYMOUS, PIPES, name_of
from ...base.mapped_files import path_at
from ...base.neighbours import named
from ...base.networks import namespace_of
from ...base.open_descriptors import Holder, OpenDescriptors, Search, Target, holders_in, info_of, link_of, targets_of
from ...base.socket_namespaces import Namespaces
from ...base.socket_tables import SocketTables
from ...base.unix_peers import peer_of
from ...kernel import objects
from ...kernel.objects import ObjectRecord, parse_object
from ...outside.client import CLIENT
from .connection_figures import ConnectionFigures
from .event_peers import Connection, connections_of, peers_of
from .object_kinds import kind_of
from .retransmissions import Retransmissions

_SLICE = 0.02
"""Seconds for names, and for a search, between two looks at the rings."""
_RARELY = 20
"""A search for other ends begins after at most so many times as long as the last one took; the second one at once, the
next ones later each time."""
_NEAR = 32
"""Number of processes that are asked first, of those that wait for something."""
_LAST = 1.0
"""Seconds for the search when the trace has ended."""
_MOST_TARGETS = 16
"""Targets of an epoll descriptor: of one with more, it is not looked for a single one that matters."""
_MOST_CONNECTIONS = 1 << 14
"""Connections of epoll descriptors whose other ends are looked for."""
_TRIES = 8
"""Number of looks for a file that was mapped: its program may unmap it, and map it again."""
_ANONYMOUS_LINK = "anon_inode:"
_BY_PROCESSES = ("fuse", "fuseblk")
"""Types of file systems that processes of this host serve."""
_SHARED = "/dev/zero (deleted)"
"""Path of memory that processes share without a file: shmem_zero_setup() of mm/shmem.c."""


@dataclass
class _Object:
    record: ObjectRecord
    made: WaitObject
    link: str = ""
    """Address of the other end; "" if it has none, or it is not known."""
    holders: set[Holder] = field(default_factory=set)
    listens: bool = False
    """The other end has not accepted the connection: ``link`` is the socket that listens."""
    connections: dict[str, Connection] = field(default_factory=dict)
    """Connections of `EVENTS`, by the address of their other end."""
    peers: dict[str, set[Holder]] = field(default_factory=lambda: defaultdict(set))
    """Holders of these other ends."""
    of_tcp: set[tuple[str, str]] = field(default_factory=set)
    """Both ends of each TCP connection of `EVENTS`."""
    netns: int = 0
    """The inode of the network namespace of its sockets."""

    @property
    def links(self) -> set[str]:
        """Addresses of all other ends."""
        return {*self.connections, *([self.link] if self.link else ())}

    def has(self, link: str, holders: set[Holder], served_by: Callable[[int], set[int]]) -> None:
        """Takes in that these have an other end. ``served_by``: that of `fuse_servers`."""
        if link == self.link == fuse_servers.LINK:
            self.holders |= {each for each in holders if self.record.dev in served_by(each.pid)}
        elif link == self.link:
            self.holders |= holders
        if link in self.connections:
            self.peers[link] |= holders


class Objects:
    """Files and sockets of a trace. `add` takes the records, `poll` does a little at a time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._new: deque[ObjectRecord] = deque()
        self._known: dict[int, _Object] = {}
        self._unmapped: deque[tuple[_Object, int]] = deque()
        """Objects of page faults whose files were not mapped when they were looked for; which look is the next one."""
        self._files = OpenDescriptors()
        self._namespaces = Namespaces(clock)
        self._search: Search | None = None
        self._searched = 0.0
        """Seconds that the search has taken so far."""
        self._searches = 0
        self._next = self._until = 0.0
        self._tried: set[str] = set()
        self._names: dict[int, str] = {}
        self._near: list[int] = []
        """Processes that wait for something, the first ones."""
        self.figures = ConnectionFigures(self._namespaces, clock)
        self.resent = Retransmissions()
        """Segments that TCP has sent again in the interval that has ended last."""

    def add(self, data: bytes) -> None:
        """Takes a record of the ring."""
        self._new.append(parse_object(data))

    def poll(self) -> None:
        """Names some, and goes on with the search for other ends."""
        until = self._clock() + _SLICE
        while self._new and self._clock() < until:
            self._name(self._new.popleft())
        if self._unmapped:
            self._name_mapped(*self._unmapped.popleft())
        if self.figures.poll():
            self._renew(until)
        if self._search is None and self._clock() >= self._next:
            self._begin(self._links() - self._tried)
        if self._search:
            self._go_on(until)

    def _renew(self, until: float) -> None:
        """Looks for connections that epoll descriptors have got since."""
        for known in self._known.values():
            if known.made.kind == EVENTS and self._clock() < until:
                self._add_connections(known)

    def finish(self) -> None:
        """The trace has ended: what is still missing is looked for once more."""
        until = self._until = self._clock() + _LAST
        while self._new and self._clock() < until:
            self._name(self._new.popleft())
        while self._unmapped and self._clock() < until:
            self._name_mapped(self._unmapped.popleft()[0], _TRIES)
        for known in self._known.values():
            self._check_again(known)
        if self._search:
            self._go_on(until)
        if self._search is None and self._clock() < until:
            self._begin(self._unknown() | (self._links() - self._tried))
            if self._search:
                self._go_on(until)

    def others(self, number: int) -> set[int]:
        """Processes at the other end of the object that the probes give this id, as far as it is known by now."""
        known = self._known.get(number)
        return _others(known) if known else set()

    def found(self, ids: Collection[int]) -> list[WaitObject]:
        """Objects with these ids, as `label` makes them."""
        known = (self._told(self._known[number]) for number in sorted(self._known) if label(number) in ids)
        return list(known)

    def _name(self, record: ObjectRecord) -> None:
        netns = record.netns or namespace_of(record.tgid)
        known = _Object(record, WaitObject(label(record.id), kind_of(record)), netns=netns)
        made = known.made
        made.filesystem = name_of(record.magic)
        made.device, made.inode = record.device, record.inode
        if record.is_several:
            made.kind = EVENTS
            self._add_connections(known)
        elif record.address:
            self._name_mapped(known)
        elif record.kind == stat.S_IFSOCK:
            self._name_socket(known)
        elif record.kind == stat.S_IFIFO and record.magic == PIPES:
            made.does = {objects.READS: WRITES, objects.WRITES: READS}.get(record.access, "")
            known.link = f"pipe:[{record.inode}]" if made.does else ""
        elif record.magic == ANONYMOUS:
            link = link_of(record.tgid, record.tid, record.fd)
            name = link.removeprefix(_ANONYMOUS_LINK).strip("[]") if link.startswith(_ANONYMOUS_LINK) else ""
            made.kind, made.name = (EVENTS, "") if name == "eventpoll" else (OTHER, name)
            if made.kind == EVENTS:
                self._name_events(known)
        else:
            self._name_file(known)
        self._known[record.id] = known
        self.figures.watch(made, netns, record.tgid, known.of_tcp)
        if record.tgid not in self._near and len(self._near) < _NEAR:
            self._near.append(record.tgid)
            self._ask([record.tgid], self._links())
        if known.links:
            self._ask(self._near, known.links)

    def _ask(self, pids: Iterable[int], links: set[str]) -> None:
        """Looks for other ends in processes that wait for something themselves: they are often there, and may have
        ended before all processes of the host are looked at."""
        served_by = cache(fuse_servers.served_by)
        for pid in pids:
            if found := holders_in(pid, links):
                self._learn([pid])
            for link, holder in found:
                for known in self._known.values():
                    known.has(link, {holder}, served_by)

    def _links(self) -> set[str]:
        return {link for each in self._known.values() for link in each.links}

    def _name_file(self, known: _Object) -> None:
        record, made = known.record, known.made
        file = self._files.named(record.tgid, record.tid, record.fd, record.inode, record.device)
        made.name, made.filesystem = file.path, file.filesystem or made.filesystem
        kind = made.filesystem.partition(".")[0]
        made.source = file.source if kind in SERVED else ""
        known.link = fuse_servers.LINK if kind in _BY_PROCESSES else ""

    def _name_mapped(self, known: _Object, tries: int = 1) -> None:
        """The file that is mapped at the address of a page fault."""
        record, made = known.record, known.made
        made.mapped = True
        made.name = path_at(record.tgid, record.address, record.device, record.inode) if record.inode else ""
        if record.inode and not made.name and tries < _TRIES:
            self._unmapped.append((known, tries + 1))
        if not record.inode or (made.name == _SHARED and made.filesystem == "tmpfs"):
            known.made = WaitObject(made.id, MEMORY, mapped=True)
        known.link = fuse_servers.LINK if made.filesystem in _BY_PROCESSES else ""

    def _name_socket(self, known: _Object) -> None:
        record, made = known.record, known.made
        made.listens = record.listens
        if made.kind == UNIX:
            paths = self._sockets(record).paths
            made.name = paths.get(record.inode) or paths.get(record.peer, "")
            known.link = f"socket:[{record.peer}]" if record.peer else ""
        elif record.family in (objects.INET, objects.INET6):
            made.local, made.remote = record.ends
            protocol = {TCP: "tcp", UDP: "udp"}.get(made.kind)
            if protocol and made.remote and not made.listens:
                sockets = self._sockets(record)
                inode = sockets.other_end(protocol, made.local, made.remote)
                known.link = f"socket:[{inode}]" if inode else ""
                if not inode and made.kind == TCP:
                    self._name_listener(known, sockets)

    def _name_listener(self, known: _Object, sockets: SocketTables) -> None:
        """The socket of this host that has not accepted the connection yet, with its queue."""
        made = known.made
        listener = sockets.listener(made.local, made.remote)
        known.link, known.listens = f"socket:[{listener.inode}]" if listener else "", listener is not None
        made.queued, made.backlog = (listener.queued, listener.backlog) if listener else (0, 0)

    def _name_events(self, known: _Object) -> None:
        """An epoll descriptor that waits for one socket, or one pipe, is told as that one, if the others are only for
        the process itself: eventfds, timers, pipes and pairs of sockets that wake it."""
        record, made = known.record, known.made
        targets = targets_of(info_of(record.tgid, record.tid, record.fd))
        some = targets if len(targets) <= _MOST_TARGETS else []
        outside = [each for each in some if self._is_outside(record, each)]
        if len(outside) != 1:
            self._add_connections(known)
            return
        inode = outside[0].inode
        peer = peer_of(record.tgid, inode)
        sockets = self._sockets(record)
        found = sockets.socket(inode)
        if found:
            made.kind, made.local, made.remote = found.protocol.upper(), found.local, found.remote
            made.listens, made.inode = found.listens, inode
            other = 0 if found.listens else sockets.other_end(found.protocol, found.local, found.remote)
            known.link = f"socket:[{other}]" if other else ""
        elif peer or inode in sockets.paths:
            made.kind, made.inode = UNIX, inode
            made.name = sockets.paths.get(inode) or sockets.paths.get(peer, "")
            made.listens = not peer
            known.link = f"socket:[{peer}]" if peer else ""

    def _add_connections(self, known: _Object) -> None:
        """Adds those of an epoll descriptor, or of a process that polls several, as far as there is room."""
        if sum(len(each.connections) + len(each.of_tcp) for each in self._known.values()) < _MOST_CONNECTIONS:
            found = connections_of(known.record, self._sockets(known.record))
            known.connections |= found.by_link
            known.of_tcp |= found.of_tcp
            self.figures.watch(known.made, known.netns, known.record.tgid, known.of_tcp)

    def _check_again(self, known: _Object) -> None:
        """Looks again for what may have changed since: connections that were accepted, or that are new."""
        if known.listens:
            known.holders.clear()
            known.listens = False
            self._name_socket(known)
        elif known.made.kind == EVENTS and self._clock() < self._until:
            self._add_connections(known)
        else:
            self._check_events(known)

    def _check_events(self, known: _Object) -> None:
        """An epoll descriptor that waits for another socket by now was not for one alone."""
        record, made = known.record, known.made
        if record.magic != ANONYMOUS or made.kind in (EVENTS, OTHER):
            return
        if not (targets := targets_of(info_of(record.tgid, record.tid, record.fd))):
            return  # the process has ended, or closed it
        if made.inode not in {target.inode for target in targets}:
            known.made, known.link = WaitObject(made.id, EVENTS), ""
            known.holders.clear()

    def _is_outside(self, record: ObjectRecord, target: Target) -> bool:
        """Whether somebody else may end a wait for this descriptor; also if that is not known."""
        link = link_of(record.tgid, record.tid, target.fd)
        if link.startswith(_ANONYMOUS_LINK):
            return False
        if link == f"pipe:[{target.inode}]":
            held = {holder.access for _, holder in holders_in(record.tgid, {link})}
            return sum(held) < objects.READS | objects.WRITES
        if link == f"socket:[{target.inode}]" and (peer := peer_of(record.tgid, target.inode)):
            return not holders_in(record.tgid, {f"socket:[{peer}]"})
        return True

    def _sockets(self, record: ObjectRecord) -> SocketTables:
        """The sockets of its namespace, not much older than the record."""
        return self._namespaces.of(record.netns, record.tgid)

    def _unknown(self) -> set[str]:
        links = {each.link for each in self._known.values() if each.link and not _others(each)}
        return links | {link for each in self._known.values() for link in each.connections if link not in each.peers}

    def _begin(self, links: set[str]) -> None:
        if links:
            self._search, self._searched = Search(links, procfs.pids()), 0.0

    def _go_on(self, until: float) -> None:
        search, begin = self._search, self._clock()
        if search is None:
            return
        search.go_on(max(until, begin + _SLICE / 2))
        end = self._clock()
        self._searched += end - begin
        if not search.ended:
            return
        self._search, self._next = None, end + min(2**self._searches - 1, _RARELY) * self._searched
        self._searches += 1
        self._tried |= search.found.keys()
        ours, served_by = _ours(), cache(fuse_servers.served_by)
        for each in self._known.values():
            for link in each.links & search.found.keys():
                each.has(link, {holder for holder in search.found[link] if holder.pid not in ours}, served_by)
        self._learn({holder.pid for holders in search.found.values() for holder in holders} - ours)

    def _learn(self, pids: Iterable[int]) -> None:
        """Names of processes, while they live."""
        new = [pid for pid in pids if pid not in self._names]
        self._names |= named({pid: procfs.comm(pid) for pid in new})

    def _told(self, known: _Object) -> WaitObject:
        own = known.record.tgid
        pids = _others(known)
        others = sorted(pids - {own} or pids)
        ends = [ObjectEnd(self._names.get(pid) or "?", pid) for pid in others[:MOST_ENDS]]
        peers = peers_of(known.connections, known.peers, own, lambda pid: self._names.get(pid) or "?")
        told = replace(known.made, ends=ends, more_ends=max(len(others) - MOST_ENDS, 0), peers=peers)
        told = self.resent.told(told, known.netns, known.of_tcp)
        return self.figures.told(told, known.netns, known.of_tcp)


def _ours() -> set[int]:
    """Processes that are no ends: this one and its helpers."""
    return {os.getpid(), *CLIENT.pids}


def _others(known: _Object) -> set[int]:
    """Processes that have the other end."""
    return {holder.pid for holder in known.holders if _is_other_end(known.made, holder)}


def _is_other_end(made: WaitObject, holder: Holder) -> bool:
    wanted = {READS: objects.READS, WRITES: objects.WRITES}.get(made.does)
    return wanted is None or bool(holder.access & wanted)
