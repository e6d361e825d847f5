"""Work of those for whom others wait: threads of the same process, peers, or who comes last at a barrier."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..facts import thresholds
from ..facts.coordinators import mostly_sleeps_itself
from ..facts.facts import Facts
from ..facts.identity import kernel_id
from ..facts.started import all_started
from ..facts.wait_functions import CLIENT_CALLS, LOADER
from ..facts.wait_kinds import CHILD, CORE, HALTED, HELD, LOCK, PEER, SLEEP, THREAD
from ..facts.wait_sums import Place, Thread
from .behind import answering, threads_behind
from .finding import CPU, Finding, Key, running, waiting


def cause_of(facts: Facts, effect: Finding) -> Finding | None:
    """Work of the threads that may end this wait, meanwhile; None if none was found."""
    asked = _asked(facts, effect)
    if asked is None:
        return None
    found = _stragglers(facts, effect) or causes_among(facts, asked, own_kinds(effect.kind))
    # The cause of a wait is occupied for a good part of that time.
    each = effect.time / len(effect.threads)
    found = [cause for cause in found if cause.time >= thresholds.CAUSE * each]
    if not found and effect.kind == PEER:
        found = _ask_for_it(facts, effect)
    if not found and effect.kind == PEER:
        found = _wait_for_others(facts, effect)
    if not found and effect.kind == PEER and (ends := _ends(facts, effect)):
        found = _behind(facts, effect, ends)
    if not found and effect.kind == THREAD:
        found = _behind(facts, effect)
    if effect.kind == CHILD:  # one child comes after the other: what all of them do counts
        return max(found, key=lambda of: (of.time, of.threads), default=None)
    return max(found, key=lambda of: (of.time / of.wall * min(1, of.time / each), of.threads), default=None)


def _asked(facts: Facts, effect: Finding) -> list[Thread] | None:
    """The threads that may end it; None for waits that no other thread ends."""
    waiting_ = set(effect.threads)
    have_ended = effect.count > len(effect.threads)
    if effect.kind == THREAD and effect.places[0].wait.job == LOADER:
        asked = [thread for thread in facts.own if not facts.is_idle(thread)]  # a thread, or processes
    elif effect.kind in (THREAD, SLEEP):
        asked = [thread for thread in facts.own if thread[0] in effect.pids]
    elif effect.kind == PEER and (ends := _ends(facts, effect)):
        asked = [*answering(facts, effect, ends)]
    elif effect.kind == CHILD and (pids := all_started(effect.threads, facts.started)):
        asked = [thread for thread in facts.own if thread[0] in pids]
    elif effect.kind in (PEER, CHILD):
        mine = {facts.process_of(thread) for thread in waiting_}
        few = len(facts.process_names) <= thresholds.RELATED_NAMES
        asked = [thread for thread in facts.own if few or facts.process_of(thread) in mine]
        asked = [thread for thread in asked if thread[0] not in effect.pids]
    else:
        return None
    asked = [thread for thread in asked if thread not in waiting_ and thread not in facts.coordinators]
    if effect.kind == THREAD and have_ended and len(waiting_) > 1 and not any(map(facts.is_main, waiting_)):
        # The threads of a pool were woken by somebody who moved, and does more than to look after something.
        asked = [thread for thread in asked if not facts.are_still((thread,)) and not _only_sleeps(facts, thread)]
    return [thread for thread in asked if not (have_ended and _only_awaits(facts, thread))]


def _only_sleeps(facts: Facts, thread: Thread) -> bool:
    return facts.is_quiet(thread) and mostly_sleeps_itself(facts.waits_of(thread))


def _ask_for_it(facts: Facts, effect: Finding) -> list[Finding]:
    """Other threads of the process that look up an address, or connect, nearly all of their time: for this one."""
    asking: dict[Thread, list[Place]] = {}
    waiting_ = set(effect.threads)
    for thread in facts.own:
        if thread[0] in effect.pids and thread not in waiting_:
            asking[thread] = [place for place in facts.waits_of(thread) if _looks_up(place)]
    made = waiting(facts, PEER, asking, least=thresholds.DOES_MOSTLY) if asking else None
    return [made] if made else []


def _behind(facts: Facts, effect: Finding, through: Sequence[Thread] = ()) -> list[Finding]:
    """Work of those for whom the ones wait who end the wait: ``through``, or threads of the processes that wait."""
    asked_by = frozenset(pid for pid, _ in through) or effect.pids
    found = causes_among(facts, threads_behind(facts, effect, through), own_kinds(PEER))
    return [replace(cause, asked_by=asked_by) for cause in found]


def _wait_for_others(facts: Facts, effect: Finding) -> list[Finding]:
    """Waits of those at the other end for further processes: a server that asks another one."""
    found = causes_among(facts, _ends(facts, effect), (PEER,))
    return [cause for cause in found if cause.places[0].wait.asks and _is_for_others(cause, effect)]


def _is_for_others(cause: Finding, effect: Finding) -> bool:
    ends = {end.pid for end in cause.on.ends} if cause.on else set()
    return bool(ends) and ends.isdisjoint(map(kernel_id, effect.pids | cause.pids))


def _looks_up(place: Place) -> bool:
    return place.wait.asks and any(map(CLIENT_CALLS.fullmatch, place.site.frames))


def _ends(facts: Facts, effect: Finding) -> list[Thread]:
    """Threads of the traced processes that have the other end of what the wait is on."""
    pids = {end.pid for end in effect.on.ends} if effect.on else set()
    return [thread for thread in facts.own if kernel_id(thread[0]) in pids and thread[0] not in effect.pids]


def _only_awaits(facts: Facts, thread: Thread) -> bool:
    """Whether a thread waits for somebody else for the whole trace: it has ended no wait that is over."""
    return facts.are_still((thread,)) and all(place.kind in (CHILD, PEER) for place in facts.waits_of(thread))


def own_kinds(effect: str) -> tuple[str, ...]:
    """Kinds of work that may keep a waited-for thread busy."""
    if effect == SLEEP:
        return (CPU,)
    own = (CPU, SLEEP, LOCK, HELD, HALTED)
    # Others of the same process, or a child, may wait for something outside of it.
    return (*own, PEER, CHILD) if effect in (THREAD, CHILD) else own


def without(facts: Facts, effect: Finding, others: Finding) -> Finding:
    """``effect`` without the threads of ``others``, if any are left."""
    members = {
        thread: [place for place in effect.places if place in facts.sums[thread]]
        for thread in effect.threads
        if thread not in others.threads
    }
    left = waiting(facts, effect.kind, members, least=0) if members else None
    return left or effect


def _stragglers(facts: Facts, effect: Finding) -> list[Finding]:
    """Threads that those of ``effect`` wait for, by what they do themselves."""
    victim = effect.threads[0]
    mine = facts.process_of(victim)
    alike = [each for each in facts.own if each[0] == each[1] and facts.process_of(each) == mine]
    late = last_of_all(facts, effect, alike if victim in alike else [])
    return causes_among(facts, late, own_kinds(PEER))


def last_of_all(facts: Facts, effect: Finding, alike: Sequence[Thread]) -> list[Thread]:
    """Threads with much more time of their own than the longest waiter. Ranks of a job wait for each other, whichever
    thread delivers the message: those ``alike``, main threads of similar processes. At a barrier of threads these are
    among the threads of ``effect``: the last one waits there, too, while the others wake, but seldom."""
    victim = effect.threads[0]
    asked = dict.fromkeys(alike)
    if effect.kind == THREAD:
        seldom = thresholds.LATE_WAITS * _share_in(facts, effect, victim)
        asked |= {each: None for each in effect.threads if _share_in(facts, effect, each) <= seldom}
    kinds = own_kinds(PEER)
    least = max(thresholds.CAUSE, thresholds.LATE_TIMES * _own_share(facts, victim, kinds))
    return [each for each in asked if _own_share(facts, each, kinds) > least]


def _share_in(facts: Facts, effect: Finding, thread: Thread) -> float:
    """Share of its time spent in the places of ``effect``."""
    wall, of = facts.threads[thread].wall, facts.waits_of(thread)
    return sum(of[place].time for place in effect.places if place in of) / wall if wall else 0


def _own_share(facts: Facts, thread: Thread, kinds: tuple[str, ...]) -> float:
    """Share of its time spent running or in these kinds of waits."""
    times = facts.threads[thread]
    waits = sum(total.time for place, total in facts.waits_of(thread).items() if place.kind in kinds)
    return (times.on_cpu + waits) / times.wall if times.wall else 0


def causes_among(
    facts: Facts, asked: Iterable[Thread], kinds: tuple[str, ...], *, idle_too: bool = False
) -> list[Finding]:
    """Main work of these threads, by name, if it is enough to keep others waiting. ``idle_too``: also those of which
    it seems that they wait for work; who sleeps at steady intervals may have a lock all the same."""
    groups: dict[Key, dict[Thread, list[Place]]] = defaultdict(dict)
    runs: dict[Key, list[Thread]] = defaultdict(list)
    for thread in asked:
        if (facts.is_idle(thread) and not idle_too) or not facts.threads[thread].wall:
            continue
        kind, places = _mostly(facts, thread, kinds)
        key = facts.process_of(thread), facts.name_of(thread), kind
        if kind == CPU:
            runs[key].append(thread)
        elif places:
            groups[key][thread] = places
    found = [_mostly_one(facts, running(facts, members)) for members in runs.values()]
    found += [made for key, members in groups.items() if (made := waiting(facts, str(key[2]), members))]
    return [cause for cause in found if cause.wall and cause.time >= thresholds.CAUSE * cause.wall]


def _mostly_one(facts: Facts, cause: Finding) -> Finding:
    """The thread that has most of the time, alone; all of them if there is none."""
    first = running(facts, cause.threads[:1])
    return first if first.time >= thresholds.MOSTLY_ONE * cause.time else cause


def _mostly(facts: Facts, thread: Thread, kinds: tuple[str, ...]) -> tuple[str, list[Place]]:
    """Main work of a thread: to run, or to wait in one of these kinds."""
    times = facts.threads[thread]
    of: dict[str, int] = defaultdict(int)
    places: dict[str, list[Place]] = defaultdict(list)
    for place, total in facts.waits_of(thread).items():
        if place.kind in kinds:
            of[place.kind] += total.time
            places[place.kind].append(place)
    if CPU in kinds:
        # Waiting for a core counts half as its own work.
        of[CPU] = times.on_cpu + times.runnable // 2
    most = max(of, key=lambda kind: (of[kind], kind), default=CORE)
    return most, places[most]
