"""Work of threads while they do not wait for a lock: among it is what its holder does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from ..base.units import share
from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.wait_kinds import CHILD, CORE, HELD, LOCK, PEER, SLEEP
from ..rules.finding import Finding

_CAUSES = (HELD, PEER, CHILD)
"""Waits inside a lock. Others are outside of it, as a rule, or effects of this wait."""


def beside_lock(lock: Finding, facts: Facts) -> str:
    """``the rest of their time: 13.9 % waiting for a core, 3.1 % blocked in flush_log → fsync``; "" if nothing of it
    can hold others up.

    ``lock``: a wait for a lock. Names are unescaped (hostile).
    """
    if lock.kind != LOCK or not lock.wall or len(lock.threads) < 2:
        return ""
    places, duration = facts.places_of(lock.threads), facts.duration
    queued: dict[tuple[str, ...], int] = defaultdict(int)
    for place, time in places.items():
        if place.kind == CORE:
            queued[() if place.wait.nowhere else place.site.frames] += time
    on_cpu = sum(facts.threads[thread].on_cpu for thread in lock.threads)
    found = [(on_cpu, "on a core", False), (sum(queued.values()), *_queued(queued))]
    blocked: dict[str, int] = defaultdict(int)
    slept: dict[str, int] = defaultdict(int)
    for place, time in places.items():
        if place.kind in (*_CAUSES, SLEEP) and place.site.frames and not place.wait.nowhere:
            where = " → ".join(place.site.frames)
            (slept if place.kind == SLEEP else blocked)[where] += time
    found += [(time, f"blocked in {where}", True) for where, time in blocked.items()]
    found += [
        (time, f"sleeping in {where}", True)
        for where, time in slept.items()
        if thresholds.ONE_SLEEPS * duration <= time <= thresholds.ONE_SLEEPS_MOST * duration
    ]
    told = [each for each in sorted(found, reverse=True) if each[0] >= thresholds.BESIDE_LOCK * duration]
    told = told[: thresholds.BESIDE_LOCK_PLACES]
    if not any(names_a_place for _, _, names_a_place in told):
        return ""
    return f"the rest of their time: {', '.join(f'{share(time, lock.wall)} {text}' for time, text, _ in told)}"


def _queued(times: Mapping[tuple[str, ...], int]) -> tuple[str, bool]:
    """Text, and whether it names a place. ``times``: by the functions where the cores were lost."""
    text, whole = "waiting for a core", sum(times.values())
    most = max(times, key=lambda frames: (times[frames], frames), default=())
    if most and times[most] >= thresholds.QUEUED_IN * whole:
        return f"{text} ({share(times[most], whole)} of it in {' → '.join(most)})", True
    return text, False
