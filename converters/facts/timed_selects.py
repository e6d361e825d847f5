"""Calls of select() and poll() for no descriptor: sleeps.

Who limits its own rate (``rsync --bwlimit``) sleeps like that. Such a wait is on nothing, and timers end it.
"""

from __future__ import annotations

from collections import Counter

from ..model.waits_for import TIMER, WaitGraph
from . import thresholds
from .idle_evidence import node_of
from .wait_functions import FEW_EVENTS
from .wait_kinds import EVENTS, SLEEP
from .wait_objects import Objects
from .wait_sums import Place, Sum, Sums


def with_timed_selects(sums: Sums, graph: WaitGraph, objects: Objects) -> Sums:
    """Sums with such waits as sleeps. ``graph`` is of the same threads. Nothing is known without ``objects``."""
    if not objects:
        return sums
    whole: Counter[object] = Counter()
    timed: Counter[object] = Counter()
    for (victim, waker), edge in graph.edges.items():
        whole[victim] += edge.waited
        timed[victim] += edge.waited if waker.kind == TIMER else 0
    changed = {}
    for thread, places in sums.items():
        node = node_of(thread)
        if 0 < thresholds.ENDS_ALIKE * whole[node] <= timed[node] and any(map(_is_timed, places.items())):
            changed[thread] = {_as_sleep(place, total): total for place, total in places.items()}
    return sums | changed


def _as_sleep(place: Place, total: Sum) -> Place:
    return place.as_wait(place.wait._replace(kind=SLEEP)) if _is_timed((place, total)) else place


def _is_timed(entry: tuple[Place, Sum]) -> bool:
    place, total = entry
    is_alike = place.kind == EVENTS and place.site.kernel in FEW_EVENTS
    return is_alike and not total.objects and total.count - total.open_count >= thresholds.INTERVAL_WAITS
