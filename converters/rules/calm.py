"""Hardly anything runs on the host, and nobody waits for what is held: what waits, waits for work."""

from __future__ import annotations

from typing import NamedTuple

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.wait_functions import STARTED
from ..facts.wait_kinds import HELD, LOCK, PEER, THREAD
from ..facts.wait_sums import Place
from . import busy, ends_with, for_others, holder, idle, polling, still, workers
from .verdict import IDLE, Verdict

RULE = "calm"
NEED_WORK = frozenset(each.RULE for each in (for_others, workers, busy, idle, polling, still, holder, ends_with))
"""Rules of verdicts that are no troubles where nobody has anything to do."""


class Calm(NamedTuple):
    """The detail of such a verdict."""

    processes: int
    used: int
    """ns that all of them together were on cores, or wanted one."""


def find(facts: Facts) -> list[Verdict]:
    """Finds at most one verdict: of a whole host, if its processes hardly use cores, and none of them waits much for a
    lock or a device."""
    pids = frozenset(pid for pid, _ in facts.own if pid)
    used = sum(facts.threads[thread].on_cpu + facts.threads[thread].runnable for thread in facts.own)
    if not facts.is_whole_host or not pids or used > thresholds.CALM_CORES * facts.duration or _is_held(facts):
        return []
    return [Verdict(RULE, IDLE, facts.duration, 1, pids, detail=Calm(len(pids), used))]


def _is_held(facts: Facts) -> bool:
    """Whether a thread waits for a part of the trace that matters for what has a holder, for a device, or for an answer
    to what it has asked."""
    enough = thresholds.SIGNIFICANT * facts.duration
    held = (sum(total.time for place, total in facts.waits_of(thread).items() if _tells(place)) for thread in facts.own)
    return any(time >= enough for time in held)


def _tells(place: Place) -> bool:
    return place.kind in (LOCK, HELD) or place.wait.asks or place.wait.job not in ("", STARTED)


def over_waits(verdicts: list[Verdict], _facts: Facts) -> list[Verdict]:
    """Where hardly anything runs, waits for others are waits for work: unless what an asked one does is known."""
    calms = [each for each in verdicts if each.rule == RULE]
    if not calms:
        return verdicts
    others = [each for each in verdicts if each.rule != RULE]
    if any(each.rule not in NEED_WORK or _is_asked(each) for each in others):
        return others
    return [*calms, *(each for each in others if each.rule == still.RULE)]


def _is_asked(verdict: Verdict) -> bool:
    """Whether its threads wait for a thread or a peer that is known to do something for them."""
    is_for_one = verdict.finding is not None and verdict.finding.kind in (PEER, THREAD)
    return verdict.rule == for_others.RULE and is_for_one and verdict.cause is not None
