"""Times on cores of processes that began and ended between two looks.

Nobody has seen them, but the kernel adds the times of a process that has ended to those of the one that waited for it:
wait4(2) tells the sum for a command that has ended, /proc/PID/stat for a process that runs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from dataclasses import dataclass

from ...base import procfs
from ...base.launch import Launch
from ...base.scope import Scope

_HZ = os.sysconf("SC_CLK_TCK")
_TICK = 1_000_000_000 // _HZ
"""ns: the unit of the times in /proc/PID/stat."""
_CUT = 2 * _TICK
"""ns: so much too long a difference can be, as each of the two times was cut to a tick."""
_CUTIME, _CSTIME, _BEGAN = 13, 14, 19
"""Places behind the name in /proc/PID/stat, see proc(5)."""
_LEAST, _PART = 10_000_000, 0.1
"""ns, and part of all time on cores: less does not matter."""


@dataclass(frozen=True)
class _Waited:
    began: int
    """Begin in ticks of the clock since the machine has started."""
    time: int
    """ns that descendants which have ended, and were waited for, had on cores."""


class Unseen:
    """Knows what processes had waited for when the trace began.

    When a process ends that was there before the trace, its parent gets all of its time, also that before the trace.
    So counting begins anew whenever one has ended: what is told is the least.
    """

    def __init__(self, scope: Scope, launch: Launch | None, pids: Collection[int]) -> None:
        """The trace of these processes begins now."""
        self._launch = launch
        self._is_wanted = scope.children and not scope.tids
        self._began = int(time.clock_gettime(time.CLOCK_BOOTTIME) * _HZ)
        there = {*pids, *procfs.descendants(pids)} if self._is_wanted and not launch else pids
        self._before = {pid: waited for pid in there if (waited := _waited(pid))}
        self._there = {pid: waited.began for pid, waited in self._before.items()}
        self._ended = 0
        times = procfs.schedstat(launch.pid, launch.pid) if launch else None
        self._own = times[0] if times else 0
        """ns: of the launched process, before it is the command."""

    def look(self, pids: Collection[int], ended: int) -> None:
        """Looks, from time to time during the trace. ``pids``: the traced processes that live; ``ended``: ns that
        others, which were traced, had on cores."""
        gone = {pid for pid, began in self._there.items() if (now := _waited(pid)) is None or now.began != began}
        if gone and not self._launch:
            self._before = {pid: waited for pid in {*self._before, *pids} if (waited := _waited(pid))}
            self._there = {pid: began for pid, began in self._there.items() if pid not in gone}
            self._ended = ended

    def used(self, pids: Collection[int]) -> int:
        """ns that processes which have ended had on cores; ``pids``: those traced ones that live."""
        if not self._is_wanted:
            return 0
        total = self._ended + sum(self._since(pid) for pid in pids)
        return total + (self._launch.cpu_time - self._own if self._launch and self._launch.cpu_time is not None else 0)

    def _since(self, pid: int) -> int:
        """ns that descendants of the process used which were waited for during the trace, at least."""
        now, before = _waited(pid), self._before.get(pid)
        if now is None:
            return 0
        if before and before.began == now.began:
            return max(now.time - before.time - _CUT, 0)
        return now.time if now.began > self._began else 0


def _waited(pid: int) -> _Waited | None:
    """None when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if len(fields) <= _BEGAN:
        return None
    return _Waited(int(fields[_BEGAN]), (int(fields[_CUTIME]) + int(fields[_CSTIME])) * _TICK)


def matters(unseen: int, seen: int) -> bool:
    """Whether ns that were not seen have to be told, beside those that were."""
    return unseen >= max(_LEAST, _PART * (unseen + seen))
