"""Threads of a further process, for which those wait who end a wait: the threads of a client that talk to a server end
the waits of those that called it, and the server ends theirs; or a server waits for another one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.idle_evidence import node_of
from ..facts.wait_sums import Thread
from ..model.waits_for import THREAD, Node
from .finding import Finding


def threads_behind(facts: Facts, effect: Finding, through: Iterable[Thread] = ()) -> list[Thread]:
    """Threads of the one other process that ends waits of those who end the waits of ``effect``, for most of the time
    that one of its threads waits. Empty if several processes do, or if wakers were not recorded. ``through``: those who
    end them, if they are of other processes."""
    if facts.recorded is None:
        return []
    enders = _enders(facts)
    waiters = {node_of(thread) for thread in effect.threads}
    first = {node_of(thread) for thread in through} or waiters
    outside = _outside(enders, _reached(enders, first), {node.pid for node in waiters | first})
    pids: Counter[int] = Counter()
    for node, time in outside.items():
        pids[node.pid] += time
    if not pids:
        return []
    (pid, most), *_ = pids.most_common(1)
    each = effect.time / len(effect.threads)
    if most < thresholds.ON_ONE * pids.total() or most < thresholds.MOSTLY * each:
        return []
    named = _with_most({node: time for node, time in outside.items() if node.pid == pid}, thresholds.ON_ONE * most)
    return [thread for thread in facts.own if node_of(thread) in named]


def answering(facts: Facts, effect: Finding, ends: Sequence[Thread]) -> Sequence[Thread]:
    """Of the threads at the other end, those that end waits of ``effect``, and those of their processes that these wait
    for in turn; all of them if it is not known of most of the time who has ended it."""
    if facts.recorded is None:
        return ends
    enders, nodes = _enders(facts), {node_of(thread) for thread in ends}
    direct: Counter[Node] = Counter()
    for victim in map(node_of, effect.threads):
        direct.update({ender: time for ender, time in enders.get(victim, {}).items() if ender in nodes})
    if direct.total() < thresholds.MOSTLY * effect.time:
        return ends
    reached = _reached(enders, direct)
    return [thread for thread in ends if node_of(thread) in reached]


def _with_most(times: dict[Node, int], enough: float) -> set[Node]:
    """The nodes with most time that have so much of it together."""
    found: set[Node] = set()
    time = 0
    for node in sorted(times, key=lambda node: (-times[node], node)):
        if time >= enough:
            break
        found.add(node)
        time += times[node]
    return found


def _enders(facts: Facts) -> dict[Node, Counter[Node]]:
    """Time in ns of the waits that other threads have ended, by who waited and who ended them."""
    assert facts.recorded is not None
    found: dict[Node, Counter[Node]] = defaultdict(Counter)
    for (victim, ender), edge in facts.recorded.graph.edges.items():
        if victim.kind == ender.kind == THREAD and victim != ender:
            found[victim][ender] += edge.waited
    return found


def _reached(enders: dict[Node, Counter[Node]], waiters: Iterable[Node]) -> set[Node]:
    """The waiters, and the threads of their processes that end their waits, over any number of steps."""
    reached, left = set(waiters), list(waiters)
    while left:
        victim = left.pop()
        for ender in enders.get(victim, ()):
            if ender.pid == victim.pid and ender not in reached:
                reached.add(ender)
                left.append(ender)
    return reached


def _outside(enders: dict[Node, Counter[Node]], of: Iterable[Node], pids: set[int]) -> Counter[Node]:
    """Time of the waits of these threads that others than their processes end, by who ends them."""
    found: Counter[Node] = Counter()
    for victim in of:
        for ender, time in enders.get(victim, Counter()).items():
            if ender.pid not in pids:
                found[ender] += time
    return found
