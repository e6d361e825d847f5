"""Connections of processes on which TCP has sent segments again, whichever of their threads wait on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import NamedTuple

from .facts import Facts
from .wait_objects import On


class Lossy(NamedTuple):
    """A process, and its connection, or connections, with most of these segments."""

    pid: int
    on: On


def lossy(facts: Facts, pids: Collection[int]) -> Lossy | None:
    """The one of these processes, and its connection, with most segments that explain a part of the waits on it; None
    if there is none."""
    times: dict[tuple[int, int], int] = defaultdict(int)
    for thread in facts.own:
        for total in facts.waits_of(thread).values() if thread[0] in pids else ():
            for number, time in (total.objects or {}).items():
                if number in facts.objects and facts.objects[number].retransmissions:
                    times[thread[0], number] += time
    found = (Lossy(pid, On(facts.objects[number], time=time)) for (pid, number), time in times.items())
    return max(
        (each for each in found if each.on.is_resent),
        key=lambda each: (each.on.what.retransmissions, each.pid, each.on.what.id),
        default=None,
    )
