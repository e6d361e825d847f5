"""Waits of event loops that the processes end whose clients they are: for answers, not for work.

An epoll descriptor tells nothing of whom a wait is for. Who ended it does, if that process has the other end of one of
its connections; and that it listens at this connection's address tells that it was asked.
"""

from __future__ import annotations

from . import thresholds
from .wait_kinds import EVENTS, PEER
from .wait_objects import Objects
from .wait_sums import Place, Sum, Sums


def with_waits_for_servers(sums: Sums, objects: Objects) -> Sums:
    """Sums with such waits as waits for a peer that was asked."""
    servers = {(each.id, peer.pid) for each in objects.values() for peer in each.peers if peer.serves}
    if not servers:
        return sums
    changed = {}
    for thread, places in sums.items():
        if any(total.by_peers for total in places.values()):
            changed[thread] = {_for_servers(place, total, servers): total for place, total in places.items()}
    return sums | changed


def _for_servers(place: Place, total: Sum, servers: set[tuple[int, int]]) -> Place:
    answered = sum(time for key, time in (total.by_peers or {}).items() if key in servers)
    if place.kind != EVENTS or answered < thresholds.ON_ONE_PEER * total.time:
        return place
    return place.as_wait(place.wait._replace(kind=PEER, asks=True))
