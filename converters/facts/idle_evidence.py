"""Threads that only wait for work, as those tell who ended their waits: timers, the network, threads of their pool.

A thread for which others wait is never one of them, whatever it does.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

from ..model import Profile, ThreadTimes
from ..model.waits_for import SOFTIRQ, TIMER, UNKNOWN, Node, WaitGraph
from ..model.waits_for import THREAD as A_THREAD
from . import thresholds
from .identity import kernel_id, with_own_ids
from .task_waits import in_tasks
from .thread_roles import ThreadRoles, roles_of
from .wait_functions import EVENT_LOOPS
from .wait_kinds import EVENTS, TOLD_BY_OTHERS, WORK
from .wait_kinds import THREAD as FOR_THREADS
from .wait_sums import Place, Sum, Sums, Thread, add_up_waits, merged_threads

PERIODIC, PARKED, REQUESTS = "periodic", "parked", "requests"
"""Evidence that a thread is idle: it sleeps in steady intervals; it is one of several workers that wait for work from
their own process; it is an event loop that waits for what comes from outside of its process."""
_OWN, _OTHERS = "own", "others"
"""Origins of the ends of waits, beside the kinds of interrupts: threads of the same process, or of others."""


class Evidence(NamedTuple):
    kind: str
    place: Place
    """Place where the thread waits for work."""


def idle_by_evidence(
    sums: Sums, threads: Mapping[Thread, ThreadTimes], graph: WaitGraph, in_task: Collection[Thread] = frozenset()
) -> dict[Thread, Evidence]:
    """Evidence for each thread that is idle. ``graph`` is of the same threads; ``in_task``: those that are in the
    middle of a task: what they wait for is needed."""
    ends = _ends(graph)
    found = {}
    for thread, places in sums.items():
        if thread in in_task:
            continue
        place = _only_place(places, threads[thread])
        if place and (kind := _kind(thread, place, places[place], ends.get(node_of(thread), {}))):
            found[thread] = Evidence(kind, place)
    at_work = _at_work(threads)
    alike = Counter((pid, place) for (pid, _), (kind, place) in found.items() if kind == PARKED)
    pools = {
        thread: evidence
        for thread, evidence in found.items()
        if evidence.kind != PARKED or (thread[0] in at_work and alike[thread[0], evidence.place] > 1)
    }
    return _not_needed(pools, threads, graph)


def with_evidence(roles: ThreadRoles, found: Mapping[Thread, Evidence]) -> ThreadRoles:
    """Marks these threads as idle, too."""
    quiet = roles.quiet | {thread: frozenset((evidence.place,)) for thread, evidence in found.items()}
    by = {thread: evidence.kind for thread, evidence in found.items()}
    return replace(roles, quiet=quiet, idle=roles.idle | frozenset(found), by=by)


def roles_by_wakers(
    profile: Profile, sums: Sums, threads: dict[Thread, ThreadTimes], graph: WaitGraph | None
) -> ThreadRoles:
    """Roles of the threads of a profile with own ids; ``graph``: who waits for whom, None if no wakers are known."""
    before = roles_of(sums, threads)
    if graph is None:
        return before
    roles = with_evidence(before, idle_by_evidence(sums, threads, graph))
    in_task = in_tasks(profile, {thread: roles.quiet[thread] for thread in roles.idle})
    if not in_task:
        return roles
    needed = with_evidence(before, idle_by_evidence(sums, threads, graph, in_task))
    return replace(needed, idle=needed.idle - in_task, in_task=in_task)


def for_work(sums: Sums) -> frozenset[Thread]:
    """Threads of a language's runtime that mostly wait until it has work for them."""
    return frozenset(
        thread
        for thread, places in sums.items()
        if sum(total.time for place, total in places.items() if place.kind == WORK)
        > thresholds.MOSTLY * sum(total.time for total in places.values())
    )


def waiting_for_work(roles: ThreadRoles, sums: Sums) -> frozenset[Thread]:
    """Threads whose waits tell nothing of others: idle ones, those that never moved, and those of runtimes."""
    return roles.idle | roles.still | for_work(sums)


def idle_nodes(profile: Profile, graph: WaitGraph) -> set[Node]:
    """The threads that only wait for work, in the graph of a profile that has the columns of waits."""
    own = with_own_ids(profile)
    threads = merged_threads(own.threads)
    sums = add_up_waits(own, threads)
    roles = roles_by_wakers(own, sums, threads, graph)
    return {node_of(thread) for thread in roles.idle}


def node_of(thread: Thread) -> Node:
    """The node of a thread with own ids."""
    return Node(A_THREAD, kernel_id(thread[0]), kernel_id(thread[1]))


def _only_place(places: Mapping[Place, Sum], times: ThreadTimes) -> Place | None:
    """Place in which a thread spends nearly all of its time, if others end that wait."""
    place = max(places, key=lambda each: (places[each].time, each), default=None)
    enough = (times.wall - times.runnable) * thresholds.ONE_WAIT
    if place is None or place.kind not in TOLD_BY_OTHERS or place.wait.asks or not 0 < enough <= places[place].time:
        return None
    return place


def _kind(thread: Thread, place: Place, total: Sum, ends: Mapping[str, int]) -> str:
    """Evidence of the wakers of a thread's only wait; "" if it may be more than waiting for work."""
    enough = sum(ends.values()) * thresholds.ENDS_ALIKE

    def mostly(*kinds: str) -> bool:
        return 0 < enough <= sum(ends.get(kind, 0) for kind in kinds)

    if mostly(TIMER, UNKNOWN) and _is_steady(total):
        return PERIODIC
    if place.kind == EVENTS and place.site.kernel in EVENT_LOOPS and mostly(SOFTIRQ, _OTHERS, TIMER, UNKNOWN):
        return REQUESTS
    if place.kind in (FOR_THREADS, EVENTS) and thread[0] != thread[1] and mostly(_OWN, UNKNOWN):
        return PARKED
    return ""


def _is_steady(total: Sum) -> bool:
    """Whether no wait is much longer than the mean; or, as one may be late, none much shorter than that of the others.
    The last one, which has not ended, is no longer than they are."""
    number, time = total.count - total.open_count, total.time - total.open_time
    if number < thresholds.INTERVAL_WAITS:
        return False
    steady = thresholds.STEADY
    return total.max <= steady * time / number or total.min * steady >= (time - total.max) / (number - 1)


def _at_work(threads: Mapping[Thread, ThreadTimes]) -> set[int]:
    """Processes that progress."""
    busy: dict[int, int] = defaultdict(int)
    longest: dict[int, int] = defaultdict(int)
    for (pid, _), times in threads.items():
        busy[pid] += times.on_cpu + times.runnable
        longest[pid] = max(longest[pid], times.wall)
    return {pid for pid, time in busy.items() if time >= thresholds.GETS_ON * longest[pid] > 0}


def _ends(graph: WaitGraph) -> dict[Node, dict[str, int]]:
    """Blocked time of each thread by who ended it."""
    found: dict[Node, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for (victim, waker), edge in graph.edges.items():
        kind = waker.kind if waker.kind != A_THREAD else _OWN if waker.pid == victim.pid else _OTHERS
        found[victim][kind] += edge.waited
    return found


def _not_needed(
    found: dict[Thread, Evidence], threads: Mapping[Thread, ThreadTimes], graph: WaitGraph
) -> dict[Thread, Evidence]:
    """Threads for which no other thread waits much. What idle threads wait for does not count."""
    by_node = {node_of(thread): thread for thread in found}
    waited: dict[Node, int] = defaultdict(int)
    waiters: dict[Node, list[tuple[Node, int]]] = defaultdict(list)
    for (victim, end), time in graph.ends.items():
        if victim == end or end not in by_node:
            continue
        waiters[victim].append((end, time))
        if victim not in by_node:
            waited[end] += time
    left = dict(found)
    pending = list(by_node)
    while pending:
        node = pending.pop()
        thread = by_node[node]
        if thread in left and waited[node] >= thresholds.NEEDED * threads[thread].wall:
            del left[thread]
            for end, time in waiters[node]:  # its own waits count from now on
                waited[end] += time
                pending.append(end)
    return left
