"""Times for which threads waited for a core after they were woken.

perf reports that a thread runs again, not that it was woken: the time in between is part of the wait before it. The
kernel counts for each thread how long it had to wait for a core, after waits and after preemptions (the second number
of /proc/PID/task/TID/schedstat); it adds to that when the thread gets the core. What exceeds the preemptions, which
perf reports, was waited after a wake-up: known for a thread, not for each of its waits, among which it is divided.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ....converters.model import Stack
from ...base import procfs
from ..named_rows import shared_out

_TOGETHER = 64
"""Threads that are looked at in one go: what the last one does meanwhile counts as if it was after the look."""
_OFTEN, _SELDOM = 0.1, 50
"""Seconds between two looks; at least so many times the time on a core that a look takes. In a crowd a look takes much
longer than that, but delays are long there, and those after the last look at a thread are not known."""


Counts = Mapping[int, tuple[int, int]]
"""ns on a core, and waiting for one, by tid."""


@dataclass
class OnCore:
    """Counts by the kernel of one thread's time on a core, and what perf had reported, at the same times. In ns."""

    first: int | None = None
    last: int | None = None
    own_first: int = 0
    own_last: int = 0
    is_late: bool = False
    """Whether it ran at a look: the kernel's count is then as old as its last tick."""

    def seen(self, counted: int, own: int, *, runs: bool) -> None:
        """A look has shown what the kernel had counted, when perf had reported ``own``."""
        self.is_late |= runs
        if self.first is None:
            self.first, self.own_first = counted, own
        self.last, self.own_last = counted, own

    @property
    def too_much(self) -> int:
        """Excess of perf's reports over the kernel's count; less than 0: they fall short of it."""
        if self.first is None or self.last is None:
            return 0
        return (self.own_last - self.own_first) - (self.last - self.first)


@dataclass
class Delay:
    """Delay of one thread. Times are in ns."""

    first: int | None = None
    """Count of the kernel as the trace began; None: not known."""
    last: int | None = None
    """Count of the kernel at the last look; None: not known."""
    preempted: int = 0
    """Waits for a core that perf has reported, and that have ended."""
    at_first: int = 0
    at_last: int = 0
    """``preempted`` at these looks."""
    waits: dict[tuple[str, Stack], list[int]] = field(default_factory=dict)
    """Time and number of the waits that have ended, by state and stack."""

    @property
    def is_known(self) -> bool:
        return self.first is not None and self.last is not None

    def waited(self, state: str, stack: Stack, ns: int) -> None:
        """A wait has ended."""
        total = self.waits.setdefault((state, stack), [0, 0])
        total[0] += ns
        total[1] += 1

    def seen(self, counted: int) -> None:
        """A look has shown what the kernel had counted."""
        if self.first is None:
            self.first, self.at_first = counted, self.preempted
        self.last, self.at_last = counted, self.preempted

    @property
    def too_much(self) -> int:
        """Excess of perf's reports of waits for a core over the kernel's count."""
        if self.first is None or self.last is None:
            return 0
        return max((self.at_last - self.at_first) - (self.last - self.first), 0)

    def parts(self) -> dict[tuple[str, Stack], int]:
        """Parts of the waits in each place that were for a core: in the ratio of their numbers, since each was followed
        by one such wait; no more than they took."""
        if self.first is None or self.last is None:
            return {}
        left = (self.last - self.first) - (self.at_last - self.at_first)
        return _poured(left, self.waits) if left > 0 else {}


def _poured(left: int, waits: dict[tuple[str, Stack], list[int]]) -> dict[tuple[str, Stack], int]:
    """``left`` divided in the ratio of the numbers; what a place has no room for goes to the others."""
    parts = dict.fromkeys(waits, 0)
    while left > 0 and (open_ := [place for place in waits if parts[place] < waits[place][0]]):
        shares = shared_out(left, [waits[place][1] for place in open_])
        for place, share in zip(open_, shares, strict=True):
            given = min(share, waits[place][0] - parts[place])
            parts[place] += given
            left -= given
    return {place: part for place, part in parts.items() if part}


class Looks:
    """Reads what the kernel counts, again and again: of a thread that has ended nothing can be read."""

    def __init__(self) -> None:
        self._next = 0.0

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self._next

    def look(self, threads: Sequence[tuple[int, int]], now: int | None = None) -> list[tuple[int, Counts]]:
        """Counts of those (pid, tid) that are there, and when they were looked at, ns; ``now``: if it is to count for
        another moment."""
        began = time.thread_time()
        looks: list[tuple[int, Counts]] = []
        for i in range(0, len(threads), _TOGETHER):
            when = time.monotonic_ns() if now is None else now
            times = {tid: procfs.schedstat(pid, tid) for pid, tid in threads[i : i + _TOGETHER]}
            # Of a thread that has run, a kernel that does not count says 0 and 0.
            looks.append((when, {tid: found for tid, found in times.items() if found and any(found)}))
        cost = time.thread_time() - began
        self._next = time.monotonic() + max(_OFTEN, _SELDOM * cost)
        return looks
