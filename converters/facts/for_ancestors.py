"""Waits for work from the processes that have started those that wait: of pools, and of helpers.

Who reads from a pipe into which its parent writes, or from a socket that its parent has the other end of, gets its work
there: what it waits for is that there is some.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..model.wait_objects import PIPE, UNIX, WRITES
from . import thresholds
from .facts import Facts
from .identity import kernel_id
from .wait_sums import Place, Thread


def are_for_work(facts: Facts, threads: Iterable[Thread], places: Iterable[Place]) -> bool:
    """Whether nearly all of the time of these threads in these places is in such waits. A wait for an answer is none.
    False if it is not known what the waits are on, or if the ancestor was not traced: then nothing else tells of it."""
    wanted = set(places)
    if not wanted or any(place.wait.asks or place.wait.job for place in wanted):
        return False
    traced = {kernel_id(pid) for pid, _ in facts.own}
    whole = found = 0
    for thread in threads:
        origin = facts.origins.get(thread[0])
        above = {kernel_id(each.pid) for each in origin.ancestors} & traced if origin else set()
        for place, total in facts.waits_of(thread).items():
            if place in wanted:
                whole += total.time
                on = (total.objects or {}).items()
                found += sum(time for number, time in on if _is_of(facts, number, above))
    return found >= thresholds.FROM_ANCESTORS * whole > 0


def _is_of(facts: Facts, number: int, above: set[int]) -> bool:
    """Whether one of these processes (the kernel's ids) has the other end, and may write there."""
    what = facts.objects.get(number)
    if what is None or what.kind not in (PIPE, UNIX) or (what.kind == PIPE and what.does != WRITES):
        return False
    return any(end.pid in above for end in what.ends)
