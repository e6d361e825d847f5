"""TCP connections that explain waits: round trips that take long, and links that are slow to take what is sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..model.wait_objects import Link
from . import thresholds

_SECOND = 1_000_000_000


class Explains(NamedTuple):
    """Parts of a wait that a link explains. Times in ns."""

    link: Link
    by_round_trips: int
    """Part of the wait: one round trip for each wait that data has ended, but no more of the longest one; 0 if they are
    short."""
    by_rate: int
    """Part of the wait in which it took what was sent; 0 if that was not what held it up."""
    rate: int
    """Bytes a second that it took meanwhile."""

    @property
    def time(self) -> int:
        """The longer one of both parts: they are the same time."""
        return max(self.by_round_trips, self.by_rate)


def explains(links: Iterable[Link], time: int, count: int, longest: int) -> Explains | None:
    """The link that explains most of the time of ``count`` waits, ``time`` ns, if one explains most of it; with those
    of its parts that do."""
    least = thresholds.LINK_EXPLAINS * time
    found = []
    for link in links if time > 0 else ():
        trips, (sending, rate) = _by_round_trips(link, time, count, longest), _sending(link)
        if max(trips, sending) >= least:
            by_rate = min(sending, time) if sending >= least else 0
            found.append(Explains(link, trips if trips >= least else 0, by_rate, rate))
    return max(found, key=lambda each: (each.time, each.link.remote), default=None)


def together(links: Sequence[Link]) -> list[Link]:
    """Connections to one address as one, for waits on all of them."""
    if not links:
        return []
    most = max(links, key=lambda each: (each.sent, each.remote))
    one = replace(
        most,
        round_trip=min(each.round_trip for each in links),
        arrivals=sum(each.arrivals for each in links),
        busy=sum(each.busy for each in links),
        window_full=sum(each.window_full for each in links),
        sent=sum(each.sent for each in links),
        has_more=any(each.has_more for each in links),
    )
    return [one]


def _by_round_trips(link: Link, time: int, count: int, longest: int) -> int:
    if link.round_trip < thresholds.FAR * _SECOND:
        return 0
    beyond = max(longest - link.round_trip, 0)
    return max(min(min(count, link.arrivals) * link.round_trip, time - beyond), 0)


def _sending(link: Link) -> tuple[int, int]:
    """Time in which the link took what was sent, and its bytes a second; zeros if a reader, or what there was to send,
    held that up."""
    if not (link.busy and link.rate) or link.window_full >= thresholds.WINDOW_FULL * link.busy:
        return 0, 0
    mean = link.sent * _SECOND // link.busy
    in_flight = mean * link.smoothed // _SECOND
    queues = link.smoothed >= thresholds.QUEUES * link.round_trip and in_flight >= thresholds.IN_FLIGHT * link.segment
    if not (link.has_more or queues):
        return 0, 0
    # Else it was only waited for the last acknowledgement, which may come late.
    if link.rate <= thresholds.STEADY_RATE * mean:
        return link.busy, mean
    return link.sent * _SECOND // link.rate, link.rate
