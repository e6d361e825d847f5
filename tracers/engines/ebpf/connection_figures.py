"""TCP's own figures of the connections that threads wait on: how far the other end is, and how fast a link."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from ....converters.model.wait_objects import EVENTS, MOST_LINKS, TCP, Link, WaitObject
from ...base.socket_namespaces import Namespaces
from ...base.tcp_figures import TcpFigures, figures_of
from .retransmissions import is_within

_MOST = 512
"""Connections that are watched: each look at one takes some 20 µs for each of its ends."""
_FIRST, _LONGEST = 0.25, 8.0
"""Seconds between two looks: each time twice as long. A process may end, and its connections with it."""
_US = 1000
Ends = tuple[str, str]


class _Figures(NamedTuple):
    """Figures of both ends; None: it is not on this host, or closed."""

    own: TcpFigures | None
    other: TcpFigures | None


@dataclass
class _Watched:
    pid: int
    """A process in the namespace of its end."""
    other_pid: int
    """One in that of the other end; 0: there is none on this host."""
    first: _Figures
    last: _Figures
    interval: tuple[_Figures, _Figures]
    """Begin and end of the interval that has ended last."""


class ConnectionFigures:
    """Figures of connections in a trace, or in an interval of one."""

    def __init__(self, namespaces: Namespaces, clock: Callable[[], float] = time.monotonic) -> None:
        self._namespaces, self._clock = namespaces, clock
        self._watched: dict[tuple[int, Ends], _Watched] = {}
        self._next, self._pause = 0.0, _FIRST

    def watch(self, what: WaitObject, netns: int, pid: int, of_tcp: Collection[Ends]) -> None:
        """Looks at the connection of an object, or at its connections, from now on. ``pid``: a process that has it.
        ``of_tcp``: both ends of each one of `EVENTS`."""
        new = [(netns, ends) for ends in ends_of(what, of_tcp) if (netns, ends) not in self._watched]
        new = [each for each in new if not is_within(*each[1])][: _MOST - len(self._watched)]
        nothing = _Figures(None, None)
        for key in new:
            other = self._namespaces.other_end(netns, *key[1])
            self._watched[key] = _Watched(pid, other or pid, nothing, nothing, (nothing, nothing))
        self._read(new)
        for key in new:
            watched = self._watched[key]
            watched.first = watched.last
        if not self._next and (new or what.kind == EVENTS):
            self._next = self._clock() + _FIRST

    def poll(self) -> bool:
        """Looks at them from time to time. Returns whether it did."""
        is_due = self._next > 0 and self._clock() >= self._next
        if is_due:
            self._read(self._watched)
            self._pause = min(2 * self._pause, _LONGEST)
            self._next = self._clock() + self._pause
        return is_due

    def cut(self) -> None:
        """Looks at them at the end of an interval."""
        self._read(self._watched)
        for watched in self._watched.values():
            watched.interval = watched.first, watched.last
            watched.first = watched.last

    def told(self, what: WaitObject, netns: int, of_tcp: Collection[Ends]) -> WaitObject:
        """The object with what is known of its connection, or of the one of `EVENTS` that explains most."""
        known = {ends: self._watched.get((netns, ends)) for ends in ends_of(what, of_tcp)}
        made = [link_of(ends[1], *watched.interval) for ends, watched in known.items() if watched]
        links = [link for link in made if link]
        if not links:
            return what
        far = sorted(links, key=lambda each: (-each.arrivals * each.round_trip, each.remote))[: MOST_LINKS // 2]
        busy = [each for each in sorted(links, key=lambda each: (-each.sent, each.remote)) if each not in far]
        return replace(what, links=far + busy[: MOST_LINKS - len(far)])

    def _read(self, keys: Iterable[tuple[int, Ends]]) -> None:
        """Looks at these, namespace by namespace."""
        wanted: dict[int, set[Ends]] = defaultdict(set)
        some = [(ends, self._watched[netns, ends]) for netns, ends in keys]
        for ends, watched in some:
            wanted[watched.pid].add(ends)
            wanted[watched.other_pid].add(ends[::-1])
        found = {pid: figures_of(pid, pairs) for pid, pairs in wanted.items()}
        for ends, watched in some:
            own, other = found[watched.pid].get(ends), found[watched.other_pid].get(ends[::-1])
            watched.last = _Figures(own or watched.last.own, other or watched.last.other)


def ends_of(what: WaitObject, of_tcp: Collection[Ends]) -> Collection[Ends]:
    """Both ends of each TCP connection of an object. ``of_tcp``: those of `EVENTS`."""
    if what.kind == EVENTS:
        return of_tcp
    return [(what.local, what.remote)] if what.kind == TCP and what.local and what.remote else []


def link_of(remote: str, first: _Figures, last: _Figures) -> Link | None:
    """Figures of what happened between two looks, at the end that has sent more; None: it is not known."""
    pairs = [(before, after) for before, after in zip(first, last, strict=True) if before and after]
    if not pairs:
        return None
    least = min((each.least_round_trip for each in last if each and each.least_round_trip), default=0)
    arrivals = last.own.segments_received - first.own.segments_received if first.own and last.own else 0
    before, after = max(pairs, key=lambda pair: pair[1].acked - pair[0].acked)
    busy = after.busy - before.busy - (after.buffer_limited - before.buffer_limited)
    return Link(
        remote,
        least * _US,
        after.round_trip * _US,
        max(arrivals, 0),
        max(busy, 0) * _US,
        max(after.window_limited - before.window_limited, 0) * _US,
        max(after.acked - before.acked, 0),
        after.rate,
        after.segment,
        before.has_more or after.has_more,
    )
