"""Threads of a process take turns: together they use one core, and each of them waits for the others.

So does a program whose threads all need one lock, such as the interpreter's of a runtime, wherever its functions have
no names that tell so.
"""

from __future__ import annotations

from collections import defaultdict

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.wait_kinds import LOCK, THREAD
from ..facts.wait_sums import Place, Thread
from .finding import Finding, waiting
from .verdict import Verdict

RULE = "turns"


def find(facts: Facts) -> list[Verdict]:
    """One for each such process. The finding is of the threads' waits for each other."""
    threads: dict[int, list[Thread]] = defaultdict(list)
    for thread in facts.own:
        threads[thread[0]].append(thread)
    found = [finding for members in threads.values() if (finding := _turns(facts, members))]
    return [Verdict(RULE, LOCK, each.time, 1, each.pids, each, is_effect=True) for each in found]


def _turns(facts: Facts, members: list[Thread]) -> Finding | None:
    """The waits for each other of the threads of a process that take turns; None if they do not."""
    used = sum(facts.threads[thread].on_cpu for thread in members)
    wanted = used + sum(facts.threads[thread].runnable for thread in members)
    least, most = thresholds.TURNS_CORES_LEAST * facts.duration, thresholds.TURNS_CORES_MOST * facts.duration
    if wanted < least or used > most or facts.cores_of(members[0][0]) < 2:
        return None
    places = {thread: found for thread in members if (found := _waits_in_turn(facts, thread))}
    return waiting(facts, THREAD, places) if len(places) > 1 else None


def _waits_in_turn(facts: Facts, thread: Thread) -> list[Place]:
    """Places where a thread waits for others, if it runs or waits there for nearly all of its time."""
    times, of = facts.threads[thread], facts.waits_of(thread)
    places = [place for place in of if place.kind == THREAD and not place.wait.join]
    waits = sum(of[place].time for place in places)
    runs = times.on_cpu + times.runnable
    is_busy = times.on_cpu >= thresholds.TURNS_RUN * times.wall and waits >= thresholds.TURNS_WAIT * times.wall
    return places if is_busy and runs + waits >= thresholds.TURNS_ALL * times.wall > 0 else []
