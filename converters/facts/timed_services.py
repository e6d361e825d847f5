"""Waits for events that timers end, of threads for which others wait meanwhile: sleeps.

Who makes others wait by a timer of its own may sleep with the call that waits for events: Ruby's ``sleep`` does it with
``ppoll``, ``asyncio.sleep`` with ``epoll_wait``. A thread for which nobody waits only looks after something at times.
"""

from __future__ import annotations

from collections import Counter

from ..model.waits_for import THREAD, Node, WaitGraph
from . import thresholds
from .idle_evidence import node_of
from .wait_kinds import EVENTS, PEER, SLEEP
from .wait_sums import Place, Sum, Sums
from .wakers import TIMEOUT


def with_timed_services(sums: Sums, graph: WaitGraph) -> Sums:
    """Sums with such waits as sleeps. ``graph``: of the same trace."""
    asked = _asked(sums, graph)
    changed = {}
    for thread, places in sums.items():
        timed = {place for place, total in places.items() if _is_timed(place, total)}
        waited = asked[node_of(thread)]
        if waited and waited >= thresholds.DOES_MOSTLY * sum(places[place].time for place in timed) > 0:
            changed[thread] = {_as_sleep(place) if place in timed else place: total for place, total in places.items()}
    return sums | changed


def _asked(sums: Sums, graph: WaitGraph) -> Counter[Node]:
    """Time for which threads of other processes wait for their peers, by the thread that ends it."""
    peers = {
        node_of(thread): sum(total.time for place, total in places.items() if place.kind == PEER)
        for thread, places in sums.items()
    }
    found: Counter[Node] = Counter()
    for (victim, end), edge in graph.edges.items():
        if end.kind == THREAD and end.pid != victim.pid:
            found[end] += min(edge.waited, peers.get(victim, 0))
    return found


def _as_sleep(place: Place) -> Place:
    return place.as_wait(place.wait._replace(kind=SLEEP))


def _is_timed(place: Place, total: Sum) -> bool:
    if place.kind != EVENTS:
        return False
    is_all = 0 < thresholds.ENDS_ALIKE * sum(total.wakers.values()) <= total.wakers.get(TIMEOUT, 0)
    return is_all and total.count - total.open_count >= thresholds.INTERVAL_WAITS
