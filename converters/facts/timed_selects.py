"""Calls of select() and poll() for no descriptor: sleeps.

Who limits its own rate (``rsync --bwlimit``) sleeps like that. Such a wait is on nothing, and timers end it.
"""

from __future__ import annotations

from . import thresholds
from .wait_functions import FEW_EVENTS
from .wait_kinds import EVENTS, SLEEP
from .wait_objects import Objects
from .wait_sums import Place, Sum, Sums

_TIMER = "[timer]"


def with_timed_selects(sums: Sums, objects: Objects) -> Sums:
    """Sums with such waits as sleeps. Nothing is known without ``objects``."""
    if not objects:
        return sums
    changed = {}
    for thread, places in sums.items():
        if any(_is_timed(place, total) for place, total in places.items()):
            changed[thread] = {_as_sleep(place, total): total for place, total in places.items()}
    return sums | changed


def _as_sleep(place: Place, total: Sum) -> Place:
    return place.as_wait(place.wait._replace(kind=SLEEP)) if _is_timed(place, total) else place


def _is_timed(place: Place, total: Sum) -> bool:
    if place.kind != EVENTS or place.site.kernel not in FEW_EVENTS or total.objects:
        return False
    timed = sum(time for waker, time in total.wakers.items() if waker.process == _TIMER)
    is_all = 0 < thresholds.ENDS_ALIKE * sum(total.wakers.values()) <= timed
    return is_all and total.count - total.open_count >= thresholds.INTERVAL_WAITS
