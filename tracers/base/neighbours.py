"""Processes that are not traced, and use cores meanwhile: they may be what the traced ones wait for a core for."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from typing import NamedTuple

from ...converters.model.neighbours import Neighbour
from ...converters.model.processes import cpu_list
from . import procfs

_LEAST = 0.01
"""Cores; who uses less is left out."""
_MOST = 20


class _Used(NamedTuple):
    name: str
    ticks: int
    began: int
    """Ticks after the boot: with it, an id is one process."""


class Neighbours:
    """Looks at all processes of the host twice. The kernel counts their time by ticks of its clock, 10 ms as a rule."""

    def __init__(self) -> None:
        self._before = _all()
        self._began = time.monotonic()
        self._used: list[tuple[int, str, float, str]] = []

    def end(self) -> None:
        """The trace has ended. This process and its helpers are no neighbours."""
        own = {os.getpid(), *procfs.descendants([os.getpid()])}
        elapsed = (time.monotonic() - self._began) * os.sysconf("SC_CLK_TCK")
        for pid, now in _all().items():
            before = self._before.get(pid)
            ticks = now.ticks - (before.ticks if before and before.began == now.began else 0)
            if pid not in own and elapsed > 0 and ticks >= _LEAST * elapsed and (cpus := _cpus(pid)):
                self._used.append((pid, now.name, ticks / elapsed, cpus))
        self._used.sort(key=lambda used: (-used[2], used[0]))
        self._before = {}

    def found(self, traced: Collection[int], duration: int) -> list[Neighbour]:
        """Processes with most time on cores that were not ``traced``. ``duration``: of the trace, in ns."""
        others = [each for each in self._used if each[0] not in traced][:_MOST]
        return [Neighbour(name, pid, round(cores * duration), cpus) for pid, name, cores, cpus in others]


def _cpus(pid: int) -> str:
    """The cores that its main thread may use; "" if it has ended."""
    try:
        return cpu_list(os.sched_getaffinity(pid))
    except OSError:
        return ""


def _all() -> dict[int, _Used]:
    found = {}
    for pid in procfs.pids():
        if used := _read(pid):
            found[pid] = used
    return found


def _read(pid: int) -> _Used | None:
    """Reads /proc/PID/stat (proc(5)): the name in parentheses, which may have any character; utime, stime,
    starttime."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            before, _, after = file.read(4096).rpartition(b")")
    except OSError:
        return None
    words = after.split()
    if len(words) < 20:
        return None
    name = os.fsdecode(before.partition(b"(")[2])
    return _Used(name, int(words[11]) + int(words[12]), int(words[19]))
