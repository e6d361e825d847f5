"""Both ends of a connection on this host wait for each other: what one has sent, the kernel holds back.

On one host, what is sent is there at once, unless TCP does not send it: Nagle's algorithm holds small data back until
what was sent before is acknowledged (RFC 896), and the other end delays that for 40 ms (TCP_DELACK_MIN of
include/net/tcp.h).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..model.wait_objects import TCP
from ..model.waits_for import SOFTIRQ
from . import thresholds
from .facts import Facts
from .identity import kernel_id
from .idle_evidence import node_of
from .wait_kinds import PEER
from .wait_objects import On
from .wait_sums import Thread


def both_wait(facts: Facts, thread: Thread) -> bool:
    """Whether a thread waits for its peer on a TCP connection, and the other end waits on it, too, for so long that
    both wait at the same time, and the network ends its waits: no timer of its own, nobody else."""
    whole, wall = facts.whole or facts, facts.threads[thread].wall
    time, on = _longest(facts, thread)
    if on is None or on.what.kind != TCP or on.number != 1 or not wall:
        return False
    others = (_share(whole, other, ended) for other, ended in _other_ends(whole, on))
    return time / wall + max(others, default=0.0) - 1 >= thresholds.BOTH_WAIT


def _longest(facts: Facts, thread: Thread) -> tuple[int, On | None]:
    """The longest of a thread's waits for its peer: ns, and what it is on."""
    of = facts.waits_of(thread)
    place = max((each for each in of if each.kind == PEER), key=lambda each: (of[each].time, each), default=None)
    return (of[place].time, facts.on(of[place], PEER, (thread[0],))) if place else (0, None)


def _other_ends(facts: Facts, on: On) -> Iterator[tuple[Thread, int]]:
    """Threads that wait on the other end of the connection, and for how many ns."""
    pids = {end.pid for end in on.ends}
    for thread in facts.own:
        if kernel_id(thread[0]) not in pids:
            continue
        time = 0
        for place, total in facts.waits_of(thread).items():
            found = facts.on(total, place.kind, (thread[0],))
            if found and (found.what.local, found.what.remote) == (on.what.remote, on.what.local):
                time += found.time
        if time:
            yield thread, time


def _share(facts: Facts, thread: Thread, time: int) -> float:
    """Share of a thread's time for which it waits there, as far as the network ends its waits."""
    if facts.recorded is None or not facts.threads[thread].wall:
        return 0.0
    node, edges = node_of(thread), facts.recorded.graph.edges
    ended = sum(edge.waited for (victim, end), edge in edges.items() if victim == node and end.kind == SOFTIRQ)
    return min(time, ended) / facts.threads[thread].wall
