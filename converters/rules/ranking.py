"""Order of verdicts: first the one that saves most time, by what is believed of it; causes before their effects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.wait_functions import TAKE_GIL
from ..facts.wait_kinds import EVENTS, HALTED, HELD, LOCK, PEER, SLEEP, THREAD
from . import (
    all_wait,
    busy,
    calm,
    crowd,
    deadlock,
    ends_with,
    for_others,
    gil_main,
    held_up,
    holder,
    idle,
    late_messages,
    late_rank,
    longest,
    near,
    polling,
    pool_anew,
    processes_anew,
    quota,
    reclaim,
    slow_step,
    still,
    straggler,
    stuck_ranks,
    workers,
)
from .ends_with import EndsWith
from .finding import CPU, Finding
from .registry import RULES
from .verdict import Verdict

Verdicts = list[Verdict]


class Dominance(NamedTuple):
    """Verdicts of one rule make those of another less important, or tell of them."""

    rule: str
    over: tuple[str, ...]
    why: str
    apply: Callable[[Verdicts, Facts], Verdicts]


class Judgement(NamedTuple):
    """Judgement of a profile."""

    verdicts: tuple[Verdict, ...]
    """The most important first, without those that others tell of."""
    first: Verdict | None
    second: Verdict | None
    """Verdict on another trouble, or on the cause of the first one; None if there is none worth telling."""
    blamed: tuple[Verdict, ...]
    """Verdicts on who has a lock, and on those with whom waits end: told with the first verdict."""
    still: tuple[Verdict, ...]
    """Verdicts on processes that did not move, of which the others do not tell."""
    steps: tuple[Verdict, ...]
    """Verdicts on slow steps and late ranks: the user asked for them, so that they are told before all others."""
    is_equal: bool = False
    """Whether the second one is worth as much as the first."""

    @property
    def ends_with(self) -> EndsWith | None:
        """Detail of the verdict on those with whom waits end."""
        return next((each.detail for each in self.blamed if isinstance(each.detail, EndsWith)), None)


_BLAMED = (holder.RULE, straggler.RULE, ends_with.RULE)
"""Rules of verdicts that tell more of others."""
_NO_TROUBLES = frozenset((for_others.RULE, workers.RULE, busy.RULE, still.RULE, deadlock.RULE, gil_main.RULE, *_BLAMED))
"""Rules of verdicts that do not make waits their effects."""


def judge(facts: Facts) -> Judgement:
    """Applies all rules, and what dominates what."""
    found = [verdict for find in RULES.values() for verdict in find(facts)]
    for dominance in DOMINANCE:
        found = dominance.apply(found, facts)
    still_ = _of(found, still.RULE)
    ranked = _ranked(found) or longest.find(facts)
    first = ranked[0] if ranked else None
    equal = near.as_much(first, ranked[1:]) if first else None
    second = equal or (_second(first, ranked[1:]) if first else None)
    steps = tuple(_of(found, slow_step.RULE, late_rank.RULE, late_messages.RULE))
    blamed = tuple(_about_first(_of(found, *_BLAMED), first, facts))
    return Judgement(tuple(ranked), first, second, blamed, tuple(still_), steps, equal is not None)


def _about_first(blamed: Verdicts, first: Verdict | None, facts: Facts) -> Verdicts:
    """Tells with whom those waits end that are in the first sentence, if it is known: others may wait for longer."""
    for each in _of(blamed, ends_with.RULE):
        if first and first.finding and first.wait_kind != CPU and not each.pids & first.pids:
            found = ends_with.about(facts, first.pids)
            blamed = _replaced(blamed, each, found[0] if found else each)
    return [each for each in blamed if each.rule != straggler.RULE or _adds(each, first)]


def _adds(late: Verdict, first: Verdict | None) -> bool:
    """Whether the first verdict is on ranks of the job, and does not tell of the one that is late."""
    if first is None or not first.pids & late.pids:
        return False
    assert isinstance(late.detail, straggler.Straggler)
    told = (first.cause.pids if first.cause else frozenset()) | (first.pids if first.effect else frozenset())
    return not told & {rank.pid for rank in late.detail.late}


def _ranked(verdicts: Verdicts) -> Verdicts:
    apart = (slow_step.RULE, late_rank.RULE, late_messages.RULE, still.RULE, *_BLAMED)
    return sorted((each for each in verdicts if each.rule not in apart and not each.is_told), key=_importance)


def _importance(verdict: Verdict) -> tuple[bool, bool, float]:
    return verdict.rule not in (deadlock.RULE, stuck_ranks.RULE), verdict.rule != gil_main.RULE, -verdict.score


def _of(verdicts: Sequence[Verdict], *rules: str) -> Verdicts:
    return [verdict for verdict in verdicts if verdict.rule in rules]


def _replaced(verdicts: Verdicts, old: Verdict, new: Verdict | None) -> Verdicts:
    changed = (new if each is old else each for each in verdicts)
    return [each for each in changed if each is not None]


def _only_one_deadlock(verdicts: Verdicts, _facts: Facts) -> Verdicts:
    """Keeps one deadlock: what its threads wait for is told in its sentence."""
    found = _of(verdicts, deadlock.RULE)
    if not found:
        return verdicts
    threads = {thread for each in found if each.finding for thread in each.finding.threads}
    pids = {pid for each in found for pid in each.pids}
    left = [
        each
        for each in verdicts
        if each.rule not in (deadlock.RULE, gil_main.RULE)
        and not (each.rule == held_up.RULE and each.finding and threads.issuperset(each.finding.threads))
        and not (each.rule == all_wait.RULE and each.pids <= pids)
    ]
    return [*found[:1], *left]


def _gil_over_its_waits(verdicts: Verdicts, _facts: Facts) -> Verdicts:
    mains = {pid for each in _of(verdicts, gil_main.RULE) for pid in each.pids}
    return [each for each in verdicts if each.rule == gil_main.RULE or not (mains and is_of_gil(each, mains))]


def is_of_gil(verdict: Verdict, pids: set[int] | frozenset[int]) -> bool:
    """Whether it tells that threads of these processes wait for Python's interpreter lock."""
    finding = verdict.finding
    if finding is None or finding.kind != LOCK or finding.pids != pids:
        return False
    return all(place.wait.lock == TAKE_GIL for place in finding.places)


def _quota_over_crowd(verdicts: Verdicts, _facts: Facts) -> Verdicts:
    """Throttled threads wait for cores anyway: that they outnumber the cores adds nothing."""
    throttled = {pid for each in _of(verdicts, quota.RULE)[:2] for pid in each.pids}
    return [each for each in verdicts if each.rule != crowd.RULE or not each.pids <= throttled]


def _aside(verdicts: Verdicts, facts: Facts) -> Verdicts:
    """A wait that delays no main thread, beside one that does."""
    for effect in _of(verdicts, for_others.RULE):
        if effect.confidence == 1:
            for held in _of(verdicts, held_up.RULE):
                assert held.finding
                delays = _leads_to(held, effect) or any(map(facts.is_main, held.finding.threads))
                if not delays:
                    verdicts = _replaced(verdicts, held, replace(held, confidence=thresholds.ASIDE_SAVES))
    return verdicts


def _leads_to(held: Verdict, effect: Verdict) -> bool:
    """Whether one causes the waits of the other."""
    finding, of, cause = held.finding, effect.finding, effect.cause
    assert finding and of
    if finding.kind == HALTED:
        return False
    by_name = cause is not None and bool(set(cause.threads) & set(finding.threads)) and cause.kind == finding.kind
    # Without times of threads it is unknown what they mostly do.
    unknown = of.kind == THREAD and not of.wall and finding.pids <= of.pids
    return by_name or unknown or (set(of.threads) == set(finding.threads) and finding.time >= of.time)


def _hands_on_over_crowd(verdicts: Verdicts, _facts: Facts) -> Verdicts:
    """Threads that hand on work all the time would wait for a core less often if they had to ask for less."""
    for effect in _of(verdicts, for_others.RULE):
        if effect.wait_kind not in (PEER, THREAD):
            continue
        for each in _of(verdicts, crowd.RULE):
            assert isinstance(each.detail, crowd.Crowd)
            if each.detail.hands_on and effect.pids <= each.pids:
                verdicts = _replaced(verdicts, each, replace(each, most=thresholds.EXPLAINED * effect.score))
    return verdicts


def _troubles_over_effects(verdicts: Verdicts, _facts: Facts) -> Verdicts:
    """The problem of their process explains these threads' waits."""
    for effect in _of(verdicts, for_others.RULE):
        wrong = [
            each.score
            for each in verdicts
            if each.rule not in _NO_TROUBLES
            and effect.pids <= each.pids
            and each.wait_kind not in (LOCK, HELD, HALTED)
            and not polling.is_wanted(each)
            # Those for whom threads wait may do much else than to wait for a core.
            and (each.rule != crowd.RULE or each.score >= effect.score)
        ]
        if wrong:
            verdicts = _replaced(verdicts, effect, replace(effect, most=thresholds.EXPLAINED * max(wrong)))
    return verdicts


def _main_over_workers(verdicts: Verdicts, _facts: Facts) -> Verdicts:
    """Drops verdicts on workers where main threads wait: that tells of the whole process, unless it may be work."""
    if any(each.wait_kind != EVENTS for each in _of(verdicts, for_others.RULE)):
        return [each for each in verdicts if each.rule != workers.RULE]
    return verdicts


def _waits_over_running(verdicts: Verdicts, facts: Facts) -> Verdicts:
    """A longer wait says more than that threads run for less time: not of what waits for work on a whole host."""
    for runs in _of(verdicts, busy.RULE):
        assert isinstance(runs.detail, busy.Busy)
        explained = frozenset(
            pid
            for each in _of(verdicts, quota.RULE, crowd.RULE, pool_anew.RULE, processes_anew.RULE)
            for pid in each.pids
        )
        changed = replace(runs, confidence=busy.confidence(facts, runs.detail.groups, explained))
        waits = [each.finding for each in _of(verdicts, for_others.RULE, workers.RULE) if each.finding]
        if any(runs.time < wait.time and _is_telling(wait, facts) for wait in waits):
            apart = (busy.RULE, still.RULE, deadlock.RULE, gil_main.RULE)
            others = [each.score for each in verdicts if each.rule not in apart and not each.is_told]
            changed = replace(changed, most=thresholds.EXPLAINED * max(others))
        verdicts = _replaced(verdicts, runs, changed)
    return verdicts


def _is_telling(effect: Finding, facts: Facts) -> bool:
    return not facts.is_whole_host and not facts.are_still(effect.threads)


def _causes_tell_of_effects(verdicts: Verdicts, _facts: Facts) -> Verdicts:
    """Gives causes the waits that they cause: their sentence tells of these."""
    for effect in _of(verdicts, for_others.RULE):
        leading = [each for each in _of(verdicts, held_up.RULE) if _leads_to(each, effect)]
        for held in leading:
            assert held.finding and effect.finding
            if not set(effect.finding.threads) & set(held.finding.threads):
                # What delays others matters, though it may have been there before.
                verdicts = _replaced(verdicts, held, replace(held, effect=effect.finding, confidence=1))
        if leading:
            verdicts = _replaced(verdicts, effect, replace(effect, is_told=True))
    return verdicts


def _told_with_its_effect(verdicts: Verdicts, _facts: Facts) -> Verdicts:
    """Running threads that others wait for are told in the sentence on the wait."""
    effects = (each for each in _of(verdicts, for_others.RULE) if not each.is_told)
    told = any(each.cause and each.cause.kind == CPU for each in effects)
    return [each for each in verdicts if each.rule != busy.RULE] if told else verdicts


def _reclaim_over_running(verdicts: Verdicts, facts: Facts) -> Verdicts:
    """Running threads that run to get memory are told as such."""
    return _without_running(verdicts, facts, reclaim.RULE)


def _polling_over_running(verdicts: Verdicts, facts: Facts) -> Verdicts:
    """Running threads that poll are told as such; so are ranks that poll for those that do not come."""
    return _without_running(verdicts, facts, polling.RULE, stuck_ranks.RULE)


def _without_running(verdicts: Verdicts, facts: Facts, *rules: str) -> Verdicts:
    told = {thread for each in _of(verdicts, *rules) if each.finding for thread in each.finding.threads}
    for runs in _of(verdicts, busy.RULE):
        assert isinstance(runs.detail, busy.Busy)
        groups = busy.without(facts, runs.detail.groups, told)
        left = sum(group.time for group in groups)
        if told and left < thresholds.SIGNIFICANT * facts.active_wall:
            verdicts = _replaced(verdicts, runs, None)
        elif groups != runs.detail.groups:
            saved, finding = busy.confidence(facts, groups), replace(groups[0], time=left)
            detail = runs.detail._replace(groups=groups, lost_in=busy.lost_in(facts, groups[0]))
            others = replace(runs, time=left, confidence=saved, finding=finding, detail=detail)
            verdicts = _replaced(verdicts, runs, others)
    return verdicts


def _held_over_polling(verdicts: Verdicts, facts: Facts) -> Verdicts:
    """Threads beside the main threads poll until those are at work again that something holds up."""
    for polls in _of(verdicts, polling.RULE):
        cause, finding = polls.cause, polls.finding
        if not cause or not finding or any(map(facts.is_main, finding.threads)):
            continue
        held = [
            each.score
            for each in _of(verdicts, held_up.RULE)
            if each.finding and each.finding.kind == cause.kind and set(cause.threads) <= set(each.finding.threads)
        ]
        if held:
            verdicts = _replaced(verdicts, polls, replace(polls, most=thresholds.EXPLAINED * max(held)))
    return verdicts


def _still_told(verdicts: Verdicts, _facts: Facts) -> Verdicts:
    """Processes of which a deadlock, or the most important verdict, tells already."""
    told = {pid for each in _of(verdicts, deadlock.RULE, stuck_ranks.RULE) for pid in each.pids}
    for each in _ranked(verdicts)[:1]:
        if each.rule == for_others.RULE and each.cause:
            told |= each.cause.pids
        if each.rule == held_up.RULE:
            told |= each.pids | (each.cause.pids if each.cause and each.detail else frozenset())
    return [each for each in verdicts if each.rule != still.RULE or not each.pids <= told]


def _all_wait_over_waits(verdicts: Verdicts, _facts: Facts) -> Verdicts:
    """Waits of threads that nobody can wake are told together."""
    pids = {pid for each in _of(verdicts, all_wait.RULE) for pid in each.pids}
    apart = (all_wait.RULE, deadlock.RULE)
    return [each for each in verdicts if each.rule in apart or not each.pids or not each.pids <= pids]


def _idle_over_events(verdicts: Verdicts, _facts: Facts) -> Verdicts:
    """Drops waits for events where the process is idle: what waits without running is told as such."""
    if not _of(verdicts, idle.RULE):
        return verdicts
    return [
        each
        for each in verdicts
        if each.rule not in (for_others.RULE, workers.RULE) or each.wait_kind not in (EVENTS, THREAD, SLEEP)
    ]


DOMINANCE = (
    Dominance(calm.RULE, tuple(sorted(calm.NEED_WORK)), "nobody has anything to do", calm.over_waits),
    Dominance(deadlock.RULE, ("*",), "nothing goes on behind it", _only_one_deadlock),
    Dominance(
        stuck_ranks.RULE, stuck_ranks.LESS, "they wait for other ranks, not for their threads", stuck_ranks.over_threads
    ),
    Dominance(all_wait.RULE, ("*",), "nothing in its process goes on", _all_wait_over_waits),
    Dominance(idle.RULE, (for_others.RULE, workers.RULE), "event loops wait for work", _idle_over_events),
    Dominance(gil_main.RULE, (held_up.RULE,), "it is the same wait, and the holder is known", _gil_over_its_waits),
    Dominance(quota.RULE, (crowd.RULE,), "throttled threads wait for a core anyway", _quota_over_crowd),
    Dominance(for_others.RULE, (held_up.RULE,), "a wait beside the main threads may delay nobody", _aside),
    Dominance(f"{polling.RULE}, {stuck_ranks.RULE}", (busy.RULE,), "it tells what they run for", _polling_over_running),
    Dominance(reclaim.RULE, (busy.RULE,), "that memory is short tells why they run", _reclaim_over_running),
    Dominance(held_up.RULE, (polling.RULE,), "who is held up keeps those waiting that poll", _held_over_polling),
    Dominance(for_others.RULE, (crowd.RULE,), "who hands on work waits for a core each time", _hands_on_over_crowd),
    Dominance(
        "quota, crowd, pool-anew, processes-anew, herd",
        (for_others.RULE,),
        "they explain what others wait for",
        _troubles_over_effects,
    ),
    Dominance(for_others.RULE, (workers.RULE,), "main threads stand for their process", _main_over_workers),
    Dominance(held_up.RULE, (for_others.RULE,), "a cause beats its effects", _causes_tell_of_effects),
    Dominance(for_others.RULE, (busy.RULE,), "the longer wait says more", _waits_over_running),
    Dominance(for_others.RULE, (busy.RULE,), "its sentence tells who runs meanwhile", _told_with_its_effect),
    Dominance(quota.RULE, (late_rank.RULE,), "it stops ranks in operations, too", late_rank.without_turns),
    Dominance("*", (still.RULE,), "their sentences tell of these processes", _still_told),
)
"""Dominance of rules over others, applied in this order."""


def _second(first: Verdict, others: Sequence[Verdict]) -> Verdict | None:
    """The verdict of the second sentence: a cause, or a problem of other processes."""
    if first.rule == deadlock.RULE:
        return None
    for other in others:
        told = first.is_effect and other.is_effect
        follows = other.is_effect and first.pids and other.pids <= first.pids and not _is_busy(first)
        # A wait for events has a low score among waits, but counts in full against running.
        time = max(first.score, first.finding.time) if first.finding else first.score
        worth = thresholds.WORTH_RUNNING * time if _is_busy(other) else thresholds.WORTH * first.score
        if first.rule == gil_main.RULE:
            worth = 0
        if not told and not follows and other.score >= worth:
            return other
    return None


def _is_busy(verdict: Verdict) -> bool:
    return verdict.rule == busy.RULE
