"""Main threads wait for somebody else to end it: another thread, a peer, a child, a timer, events."""

from __future__ import annotations

from collections import defaultdict

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.for_ancestors import are_for_work
from ..facts.wait_causes import effect_cause
from ..facts.wait_functions import STARTED
from ..facts.wait_kinds import CHILD, EVENTS, PEER, SLEEP, THREAD
from ..facts.wait_sums import Place, Thread
from .causes import cause_of, without
from .finding import Finding, Key, by_time, findings
from .verdict import Verdict, kind_of

RULE = "for-others"
KINDS = (SLEEP, THREAD, PEER, CHILD, EVENTS)
"""Kinds of waits that somebody else, or a timer, ends."""


def find(facts: Facts) -> list[Verdict]:
    """The one that matters most, with what those do who keep them waiting."""
    effect = max(effects(facts), key=lambda each: _saves(each, facts) * each.time, default=None)
    if effect is None:
        return []
    cause = cause_of(facts, effect)
    if cause:
        effect = without(facts, effect, cause)
    confidence = _confidence(effect, cause, facts)
    return [Verdict(RULE, kind_of(effect), effect.time, confidence, effect.pids, effect, cause, is_effect=True)]


def effects(facts: Facts) -> list[Finding]:
    """Main threads' waits that others end, with other threads waiting in the same places; longest first."""
    mains = set(facts.mains())
    processes = {facts.process_of(thread) for thread in mains}
    wanted = _wanted(facts, mains)
    found: dict[Key, dict[Thread, list[Place]]] = defaultdict(dict)
    for thread in facts.own:
        process = facts.process_of(thread)
        if facts.is_idle(thread) or process not in processes:
            continue
        for place in facts.waits_of(thread):
            if cause := wanted.get((place.kind, process, place.site.frames)):
                found[cause].setdefault(thread, []).append(place)
    made = findings(facts, KINDS, found)
    return sorted((finding for finding in made if mains.intersection(finding.threads)), key=by_time)


def _wanted(facts: Facts, mains: set[Thread]) -> dict[Key, Key]:
    """Causes that take enough of the time of one of ``mains``, by (kind, process, frames)."""
    found: dict[Key, Key] = {}
    for thread in mains:
        if facts.is_idle(thread):
            continue
        process, enough = facts.process_of(thread), thresholds.SIGNIFICANT * facts.threads[thread].wall
        times: dict[Key, int] = defaultdict(int)
        causes: dict[Key, Key] = {}
        for place, total in facts.waits_of(thread).items():
            if place.kind in KINDS:
                cause = effect_cause(process, place)
                causes[place.kind, process, place.site.frames] = cause
                times[cause] += total.time
        found.update((key, cause) for key, cause in causes.items() if times[cause] >= enough)
    return found


def saves(kind: str) -> float:
    """Part of a wait of this kind that is believed to be saved."""
    return {SLEEP: thresholds.SLEEP_SAVES, EVENTS: thresholds.EVENTS_SAVE}.get(kind, 1.0)


def _saves(effect: Finding, facts: Facts) -> float:
    if is_for_sleep(facts, effect):
        return thresholds.FOR_WORK_SAVES
    if are_for_work(facts, effect.threads, effect.places):
        return thresholds.FOR_WORK_SAVES
    if effect.kind != EVENTS and _may_be_for_work(effect, facts):
        return thresholds.UNKNOWN_SAVES
    if effect.kind == EVENTS and waits_beside_work(effect, facts):
        return thresholds.EVENTS_BESIDE_WORK_SAVE
    return saves(effect.kind)


def is_for_sleep(facts: Facts, effect: Finding) -> bool:
    """Whether children are waited for that mostly sleep: a shell sleeps by way of them."""
    cause = cause_of(facts, effect) if effect.kind == CHILD else None
    return cause is not None and cause.kind == SLEEP


def _may_be_for_work(effect: Finding, facts: Facts) -> bool:
    wait = effect.places[0].wait
    return not (wait.asks or wait.job == STARTED) and facts.are_slight(effect.threads)


def waits_beside_work(effect: Finding, facts: Facts) -> bool:
    """Whether it is no wait of an event loop, as far as known: not epoll, and its threads also run themselves."""
    on_cpu = sum(facts.threads[thread].on_cpu for thread in effect.threads)
    return on_cpu >= thresholds.SIGNIFICANT * effect.wall > 0 and all(place.wait.few for place in effect.places)


def _confidence(effect: Finding, cause: Finding | None, facts: Facts) -> float:
    if effect.kind == EVENTS or are_for_work(facts, effect.threads, effect.places):
        return _saves(effect, facts)
    if _may_be_for_work(effect, facts):
        return thresholds.UNKNOWN_SAVES
    if effect.kind == CHILD and cause and cause.kind == SLEEP:
        return thresholds.FOR_WORK_SAVES
    # What others of its process wait for in the same place tells nothing of a main thread that never moved.
    mains = [thread for thread in effect.threads if facts.is_main(thread)]
    return thresholds.UNKNOWN_SAVES if not cause and facts.are_still(mains or effect.threads) else 1
