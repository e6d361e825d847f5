"""Both ends of a connection on this host wait for each other: what one has sent, the kernel holds back.

On one host, what is sent is there at once, unless TCP does not send it: Nagle's algorithm holds small data back until
what was sent before is acknowledged (RFC 896), and the other end delays that for 40 ms (TCP_DELACK_MIN of
include/net/tcp.h).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from ..model.wait_objects import TCP
from ..model.waits_for import SOFTIRQ, Node
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
    threads = facts.once(_by_pid)
    for thread in (thread for pid in {end.pid for end in on.ends} for thread in threads.get(pid, ())):
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
    return min(time, facts.once(_ended_by_network)[node_of(thread)]) / facts.threads[thread].wall


def _by_pid(facts: Facts) -> dict[int, list[Thread]]:
    """Threads of user space by the kernel's ids of their processes."""
    found: dict[int, list[Thread]] = defaultdict(list)
    for thread in facts.own:
        found[kernel_id(thread[0])].append(thread)
    return found


def _ended_by_network(facts: Facts) -> Counter[Node]:
    """Time in ns of each thread's waits that softirqs have ended."""
    found: Counter[Node] = Counter()
    if facts.recorded:
        for (victim, end), edge in facts.recorded.graph.edges.items():
            if end.kind == SOFTIRQ:
                found[victim] += edge.waited
    return found
