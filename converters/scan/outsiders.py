"""Processes outside of a job that its ranks wait for in calls: monitors, and neighbours on the same devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..base.units import duration, plural, share
from ..facts import thresholds
from ..summary.sharing import Shared


def outsiders(shared: Sequence[Shared], trace: int) -> tuple[str, ...]:
    """A sentence on each process that is no rank and is inside of a call, and the next to return, while ranks wait in
    it. ``trace``: ns. Unescaped (hostile).

    A child of a rank has its environment and is a rank, too. Without ranks nobody is known to be outside.
    """
    return tuple(told for each in shared if (told := _outsider(each, trace)))


def _outsider(each: Shared, trace: int) -> str:
    waits = {pair: ns for pair, ns in each.call.waits.items() if pair[0] in each.ranks}
    waiters = {waiter for waiter, _ in waits}
    whole = sum(waits.values())
    held: Counter[int] = Counter()
    for (_, holder), ns in waits.items():
        if holder not in each.ranks:
            held[holder] += ns
    if not held or whole < thresholds.OUTSIDER_WAITS * trace * len(waiters):
        return ""
    pid, time = max(held.items(), key=lambda entry: (entry[1], -entry[0]))
    if time < thresholds.OUTSIDER * whole:
        return ""
    call = f"{each.call.name} of {each.call.device}"
    return (
        f"{each.who(pid)}, which is no rank, is inside {call} and the next to return for {share(time, whole)} of the "
        f"time for which {plural(len(waiters), 'rank')} wait in it: {duration(time)}."
    )
