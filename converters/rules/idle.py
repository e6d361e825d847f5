"""Nearly nothing runs: event loops wait for events, other threads for them."""

from __future__ import annotations

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.wait_functions import EVENT_LOOPS
from ..facts.wait_kinds import EVENTS, SLEEP, THREAD, WORK
from ..facts.wait_sums import Place, Thread
from .finding import waiting
from .verdict import IDLE, Verdict

RULE = "idle"
_KINDS = (EVENTS, THREAD, WORK, SLEEP)
"""Kinds of waits in which threads wait for work."""


def find(facts: Facts) -> list[Verdict]:
    """Finds at most one verdict, on the event loops."""
    used = sum(facts.threads[thread].on_cpu + facts.threads[thread].runnable for thread in facts.own)
    loops: dict[Thread, list[Place]] = {}
    for thread in facts.own:
        top = _top(facts, thread)
        is_loop = top is not None and (top.kind == WORK or (top.kind == EVENTS and top.wait.kernel in EVENT_LOOPS))
        if top is None or top.kind not in _KINDS or (thread[0] == thread[1] and not is_loop):
            return []
        if is_loop and (top.kind == EVENTS or thread[0] == thread[1]):
            loops[thread] = [top]
    if not loops or used > thresholds.IDLE_CPU * facts.duration or facts.are_still(facts.own):
        return []
    finding = waiting(facts, EVENTS, loops)
    if finding is None:
        return []
    return [Verdict(RULE, IDLE, finding.time, 1, finding.pids, finding)]


def _top(facts: Facts, thread: Thread) -> Place | None:
    """Place where a thread waits longest, if it mostly waits there, or mostly for work in several places: threads of
    Go's scheduler have some."""
    places, mostly = facts.waits_of(thread), thresholds.MOSTLY * facts.threads[thread].wall
    work = [place for place in places if place.kind == WORK]
    chosen = work if sum(places[place].time for place in work) > mostly else places
    top = max(chosen, key=lambda place: (places[place].time, place), default=None)
    return top if top and (chosen is work or places[top].time > mostly) else None
