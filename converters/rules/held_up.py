"""Threads are blocked by a lock, a device, memory, or a signal that stopped them.

Waits with one cause are told together, whoever calls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.file_locks import FileHolder, file_holder, is_for_file
from ..facts.identity import kernel_id, kernel_ids
from ..facts.wait_causes import held_cause
from ..facts.wait_kinds import CHILD, EVENTS, HALTED, HELD, LOCK, PEER, THREAD
from ..facts.wait_objects import On
from ..facts.wait_sums import Place, Thread
from .causes import causes_among, own_kinds
from .finding import CPU, Finding, Key, by_time, findings
from .verdict import DATABASE_LOCK, FILE_LOCK, Verdict, kind_of

RULE = "held-up"
_KINDS = (LOCK, HELD, HALTED)


def find(facts: Facts) -> list[Verdict]:
    """Longest first. Of a whole host, only of processes that moved."""
    return [_verdict(facts, held) for held in held_up(facts)]


def _verdict(facts: Facts, held: Finding) -> Verdict:
    kind = kind_of(held)
    detail = holder_of_file(facts, held) if all(is_for_file(place.wait) for place in held.places) else None
    cause: Finding | None = None
    if detail:
        cause = _does(facts, detail.pid)
    elif kind in (DATABASE_LOCK, FILE_LOCK):
        cause = _holder(facts, held)
    if kind == LOCK and len(held.pids) == 1:
        cause = _occupied(facts, held)
    if held.kind == HELD and held.on:
        cause = _serves(facts, held, held.on)
    return Verdict(RULE, kind, held.time, _confidence(facts, held), held.pids, held, cause, detail=detail)


def holder_of_file(facts: Facts, held: Finding) -> FileHolder | None:
    """Holder of the lock on a file for which these threads wait."""
    traced = kernel_ids(pid for pid, _ in facts.threads)
    return file_holder(facts.file_locks, kernel_ids(held.pids), traced, held.count // len(held.threads))


def _does(facts: Facts, pid: int) -> Finding | None:
    """Work of the threads of a process that has a lock, whatever they do."""
    threads = [thread for thread in facts.own if kernel_id(thread[0]) == pid]
    found = causes_among(facts, threads, (*own_kinds(PEER), PEER, CHILD, THREAD, EVENTS), idle_too=True)
    return max(found, key=lambda of: (of.threads[0][0] == of.threads[0][1], of.time, of.threads), default=None)


def _holder(facts: Facts, held: Finding) -> Finding | None:
    """Work of main threads of related processes, and of other threads of the same one, that do not wait for a lock
    which they share: one may have it. Of many processes, those of the same name are related."""
    few = len(facts.process_names) <= thresholds.RELATED_NAMES
    mine = {facts.process_of(thread) for thread in held.threads}
    others = [thread for thread in facts.own if thread[0] == thread[1] and thread[0] not in held.pids]
    asked = [thread for thread in others if few or facts.process_of(thread) in mine]
    if few:
        asked += [thread for thread in facts.own if thread[0] in held.pids and thread not in held.threads]
    found = causes_among(facts, asked, own_kinds(PEER), idle_too=True)
    if not found and kind_of(held) == FILE_LOCK:
        # Its holder may have started a program; who takes turns with the others may ask somebody meanwhile.
        turns = [thread for thread in others if not facts.waits_of(thread).keys().isdisjoint(held.places)]
        found = causes_among(facts, asked, (CHILD,), idle_too=True) or causes_among(facts, turns, (PEER,))
    if kind_of(held) == DATABASE_LOCK:  # a server has threads in the background, which do something, too
        found = [each for each in found if each.time >= thresholds.DOES_MOSTLY * each.wall]
    return max(found, key=lambda of: (of.time / of.wall, of.threads), default=None)


def _serves(facts: Facts, held: Finding, on: On) -> Finding | None:
    """Work of the traced processes that answer for the file system on which these threads wait."""
    pids = {end.pid for end in on.ends}
    threads = [thread for thread in facts.own if kernel_id(thread[0]) in pids and thread[0] not in held.pids]
    found = causes_among(facts, threads, (*own_kinds(PEER), PEER), idle_too=True)
    return max(found, key=lambda of: (of.time / of.wall, of.threads), default=None)


def _occupied(facts: Facts, held: Finding) -> Finding | None:
    """Work of other threads of the process that run, or wait for a device, for much of the time: one may have the
    lock. What sleeps or waits for others may have nothing to do."""
    asked = [thread for thread in facts.own if thread[0] in held.pids and thread not in held.threads]
    found = [
        each for each in causes_among(facts, asked, (CPU, HELD)) if each.time >= thresholds.DOES_MOSTLY * each.wall
    ]
    return max(found, key=lambda of: (of.time / of.wall, of.threads), default=None)


def _confidence(facts: Facts, held: Finding) -> float:
    return thresholds.STUCK_BESIDE_WORK_SAVES if facts.at_work and facts.are_still(held.threads) else 1


def held_up(facts: Facts) -> list[Finding]:
    """Waits for locks (all waiters together), devices, memory, longest first."""
    own = [thread for thread in facts.own if not (facts.is_whole_host and thread[0] in facts.still_pids)]
    enough = thresholds.SIGNIFICANT * facts.active_wall
    # By hash, as there may be very many: only what is long enough is looked at.
    times: dict[int, int] = defaultdict(int)
    for thread, place, time in _held(facts, own):
        times[hash(held_cause(facts.process_of(thread), place))] += time
    found: dict[Key, dict[Thread, list[Place]]] = defaultdict(dict)
    for thread, place, _ in _held(facts, own):
        if times[hash(key := held_cause(facts.process_of(thread), place))] >= enough:
            found[key].setdefault(thread, []).append(place)
    return sorted((each for each in findings(facts, _KINDS, found) if each.time >= enough), key=by_time)


def _held(facts: Facts, threads: Iterable[Thread]) -> Iterator[tuple[Thread, Place, int]]:
    for thread in threads:
        for place, total in facts.waits_of(thread).items():
            # Processes that are stopped for the whole trace are told as such.
            if place.kind in _KINDS and not (place.kind == HALTED and thread[0] in facts.still_pids):
                yield thread, place, total.time
