"""Connections of processes whose network explains their waits, whichever of their threads wait on them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from .facts import Facts
from .wait_objects import On


class Troubled(NamedTuple):
    """A process, and its connection, or connections, of which the network explains most."""

    pid: int
    on: On


def troubled(facts: Facts, pids: Collection[int]) -> Troubled | None:
    """The one of these processes, and its connection, with most segments that TCP has sent again, if they explain a
    part of the waits on it; else the one whose link explains most. None if there is none."""
    found: dict[tuple[int, int], On] = {}
    for thread in facts.own:
        for total in facts.waits_of(thread).values() if thread[0] in pids else ():
            for number, time in (total.objects or {}).items():
                if number in facts.objects:
                    on = found.get((thread[0], number)) or On(facts.objects[number])
                    longest, count = max(on.longest, total.max), on.count + total.count
                    found[thread[0], number] = replace(on, time=on.time + time, count=count, longest=longest)
    return max(
        (Troubled(pid, on) for (pid, _), on in found.items() if on.tells_network),
        key=lambda each: (_resent(each.on), _explained(each.on), each.pid, each.on.what.id),
        default=None,
    )


def _resent(on: On) -> int:
    return on.what.retransmissions if on.is_resent else 0


def _explained(on: On) -> int:
    return on.link.time if on.link else 0
