"""Objects of the waits of a place: one file or socket, or several that have something in common."""

from __future__ import annotations

import functools
import os
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..base.text import json_text
from ..model.group_limits import GroupLimit
from ..model.wait_objects import (
    DEVICE,
    EVENTS,
    FILE,
    FOLDER,
    MEMORY,
    NETWORK,
    PIPE,
    TERMINAL,
    UNIX,
    WRITES,
    ObjectEnd,
    ObjectPeer,
    WaitObject,
)
from . import thresholds
from .group_limits import limit_json
from .links import Explains, explains, together

_SECOND = 1_000_000_000
_PATHS = (FILE, FOLDER, DEVICE, TERMINAL)
Objects = Mapping[int, WaitObject]
"""Files, sockets and pipes by their ids."""


_LOOPBACK = ("127.", "[::1]", "[::ffff:127.")
"""Begins of addresses of this host."""


@dataclass(frozen=True)
class On:
    """File or socket that most of a wait's time is on. Names are hostile."""

    what: WaitObject
    """Object with the most time, alone or one of several alike."""
    number: int = 1
    """Number of objects that are alike."""
    folder: str = ""
    """Folder in which all of several files are; "" if they are one path, or no files."""
    time: int = 0
    """ns of the wait on them."""
    limit: GroupLimit | None = None
    """The limit of a control group for which it waits; None: nothing shows one."""
    count: int = 0
    """Number of waits of the place, or places, that are mostly on it."""
    longest: int = 0
    """The longest of them, in ns."""
    woken: int = 0
    """Time in ns that the process at the other end has ended, of an epoll descriptor that is told as a connection."""

    @property
    def is_remote(self) -> bool:
        """Whether it is a socket of the internet whose other end no process of this host has, as far as is known."""
        what = self.what
        if what.kind not in NETWORK or what.listens or not what.remote or self.ends or what.more_ends:
            return False
        return not what.remote.startswith(_LOOPBACK)

    @property
    def is_resent(self) -> bool:
        """Whether what TCP has sent again on it, or on them, explains a part of the wait that matters: it waited for at
        least `thresholds.RESENDS_AFTER` before each, and longer if there was no answer."""
        after = round(thresholds.RESENDS_AFTER * _SECOND)
        explained = self.what.retransmissions * after + self.what.unanswered
        return explained > 0 and explained >= thresholds.RESENT_MATTERS * self.time

    @functools.cached_property
    def link(self) -> Explains | None:
        """The connection, or the one of several, whose round trips or rate explain most of the wait."""
        return explains(self.what.links, self.time, self.count, self.longest)

    @property
    def tells_network(self) -> bool:
        """Whether it is the network that explains the wait, or a part of it."""
        return self.is_resent or self.link is not None

    @property
    def ends(self) -> tuple[ObjectEnd, ...]:
        """Processes that have the other end."""
        return tuple(self.what.ends)


def on_of(times: Mapping[int, int], whole: int, objects: Objects) -> On | None:
    """File or socket that a wait of ``whole`` ns is on. ``times``: its ns by object. None if no object, and no
    group of them that are alike, has most of it."""
    known = {number: time for number, time in times.items() if number in objects}
    enough = thresholds.ON_ONE * whole
    if not known or sum(known.values()) < enough:
        return None
    first = max(known, key=lambda number: (known[number], number))
    if known[first] >= enough:
        return On(objects[first], time=known[first])
    for alike in (_path_or_end, _service, _folder):
        if found := _grouped(known, objects, alike, enough):
            return found
    return None


def _grouped(
    times: Mapping[int, int], objects: Objects, alike: Callable[[WaitObject], Hashable], enough: float
) -> On | None:
    """The group with most of the time, if it has enough."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for number in times:
        if (key := alike(objects[number])) is not None:
            groups[key].append(number)
    if not groups:
        return None
    time_of = {key: sum(times[number] for number in members) for key, members in groups.items()}
    key, members = max(groups.items(), key=lambda group: (time_of[group[0]], len(group[1]), min(group[1])))
    if time_of[key] < enough:
        return None
    most = max(members, key=lambda number: (times[number], number))
    folder = os.path.dirname(objects[most].name) if alike is _folder else ""
    return On(_with_all([objects[each] for each in members], objects[most]), len(members), folder, time_of[key])


def _with_all(members: Sequence[WaitObject], most: WaitObject) -> WaitObject:
    """One of several connections, with what TCP has sent, and sent again, on all of them."""
    return replace(
        most,
        retransmissions=sum(each.retransmissions for each in members),
        unanswered=max(each.unanswered for each in members),
        links=together([link for each in members for link in each.links]),
    )


def _path_or_end(what: WaitObject) -> Hashable:
    """Equal for objects that are the same to who waits: one path, connections to one process at one address."""
    if what.kind in _PATHS:
        return (what.kind, what.name) if what.name else None
    ends = tuple(end.pid for end in what.ends)
    if what.kind in NETWORK:
        return what.kind, what.remote or what.local, ends
    if what.kind == UNIX and (what.name or ends):
        return what.kind, what.name, ends
    if what.kind == MEMORY:
        return what.kind
    return (what.kind, what.does, ends) if what.kind == PIPE and ends else None


def _service(what: WaitObject) -> Hashable:
    """Connections to one address, whoever answers there."""
    if what.kind in NETWORK and what.remote:
        return what.kind, what.remote
    return (what.kind, what.name) if what.kind == UNIX and what.name else None


def _folder(what: WaitObject) -> Hashable:
    return (FILE, os.path.dirname(what.name)) if what.kind == FILE and what.name else None


def with_peer(on: On, by_peers: Mapping[tuple[int, int], int], objects: Objects) -> On:
    """An epoll descriptor as the connection to the process that has ended most of the waits on it, if one has."""
    if on.what.kind != EVENTS or on.number > 1 or not by_peers:
        return on
    number, pid = max(by_peers, key=lambda key: (by_peers[key], key))
    time = by_peers[number, pid]
    peer = next((each for each in objects[number].peers if each.pid == pid), None) if number == on.what.id else None
    if peer is None or time < thresholds.ON_ONE_PEER * on.time:
        return on
    ends = [ObjectEnd(peer.process, peer.pid)]
    network = peer.kind in NETWORK
    what = WaitObject(
        number,
        peer.kind,
        "" if network else peer.address,
        remote=peer.address if network else "",
        does=WRITES if peer.kind == PIPE else "",
        ends=ends,
        peers=objects[number].peers,
    )
    return replace(on, what=what, woken=time)


def on_json(on: On | None) -> dict[str, Any] | None:
    """Plain data for ``json.dumps``."""
    if on is None:
        return None
    what = on.what
    texts = ("kind", "name", "filesystem", "source", "device", "local", "remote")
    return {
        **{name: json_text(text) for name in texts if (text := getattr(what, name))},
        **({"inode": what.inode} if what.inode else {}),
        **({"listens": True} if what.listens else {}),
        **({"folder": json_text(on.folder)} if on.folder else {}),
        "number": on.number,
        "time_ns": on.time,
        "ends": [{"process": json_text(end.process), "pid": end.pid} for end in what.ends],
        "more_ends": what.more_ends,
        **({"queued": what.queued, "backlog": what.backlog} if what.queued or what.backlog else {}),
        **({"retransmissions": what.retransmissions, "unanswered_ns": what.unanswered} if what.retransmissions else {}),
        **({"resent_with": json_text(what.resent_with)} if what.resent_with else {}),
        **_link_json(on),
        **({"woken_ns": on.woken} if on.woken else {}),
        **({"limit": limit_json(on.limit)} if on.limit else {}),
        **({"peers": [_peer_json(peer) for peer in what.peers]} if what.peers else {}),
    }


def _link_json(on: On) -> dict[str, Any]:
    """The link that explains most of the wait, and what it explains."""
    found = on.link
    if found is None:
        return {}
    link = {
        "remote": json_text(found.link.remote),
        "round_trip_ns": found.link.round_trip,
        "arrivals": found.link.arrivals,
        "rate": found.rate,
        "by_round_trips_ns": found.by_round_trips,
        "by_rate_ns": found.by_rate,
    }
    return {"link": link}


def _peer_json(peer: ObjectPeer) -> dict[str, Any]:
    return {
        "process": json_text(peer.process),
        "pid": peer.pid,
        "kind": peer.kind,
        "address": json_text(peer.address),
        "number": peer.number,
        "serves": peer.serves,
    }
