"""Processes that are not traced, and use cores meanwhile or end waits: they may be what the traced ones wait for."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from ...converters.model.neighbours import Neighbour
from ...converters.model.processes import cpu_list
from ..outside.reads import heads
from . import procfs
from .scripts import script_of

_LEAST = 0.01
"""Cores; who uses less is left out."""
_MOST = 20
_WAKERS = 256
"""Processes that end waits, of which the scripts are asked for."""
_COMMAND_LINE = 1 << 12
"""Bytes in which a script is looked for."""
_COMM = 15
"""Longest name that the kernel keeps: a script that is executed gives its process its own."""
NOBODY: Mapping[int, str] = MappingProxyType({})


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
        self._names: dict[int, str] = {}
        """Names of all processes when the trace ended."""
        self._cores: dict[int, float] = {}
        """Cores that each process used."""

    def end(self) -> None:
        """The trace has ended. This process and its helpers are no neighbours."""
        own = {os.getpid(), *procfs.descendants([os.getpid()])}
        elapsed = (time.monotonic() - self._began) * os.sysconf("SC_CLK_TCK")
        for pid, now in _all().items():
            self._names[pid] = now.name
            before = self._before.get(pid)
            ticks = now.ticks - (before.ticks if before and before.began == now.began else 0)
            self._cores[pid] = ticks / elapsed if elapsed > 0 else 0.0
            if pid not in own and elapsed > 0 and ticks >= _LEAST * elapsed and (cpus := _cpus(pid)):
                self._used.append((pid, now.name, ticks / elapsed, cpus))
        self._used.sort(key=lambda used: (-used[2], used[0]))
        self._before = {}

    def found(
        self,
        traced: Collection[int],
        duration: int,
        wakers: Mapping[int, str] = NOBODY,
        ends: Mapping[int, str] = NOBODY,
    ) -> list[Neighbour]:
        """Processes with most time on cores that were not ``traced``, those that ended waits, and those with the other
        ``ends`` of what was waited on. ``duration``: of the trace, in ns. ``wakers``: names of processes that did, by
        pid; one that has another name now is another one. ``ends``: names with scripts, by pid."""
        others = [each for each in self._used if each[0] not in traced][:_MOST]
        used = [pid for pid, *_ in others]
        known = {*traced, *used}
        more = [pid for pid, name in wakers.items() if pid not in known and self._names.get(pid) == name]
        scripts = _scripts([*used, *more[:_WAKERS]])
        found = [
            Neighbour(_with_script(name, scripts.get(pid, "")), pid, round(cores * duration), cpus)
            for pid, name, cores, cpus in others
        ]
        for pid, name in ends.items():
            if pid in self._cores and pid not in known:
                known.add(pid)
                found.append(Neighbour(name, pid, round(self._cores[pid] * duration), _cpus(pid)))
        told = {each.pid for each in found}
        woke = [pid for pid in more if scripts.get(pid) and pid not in told]
        return found + [Neighbour(_with_script(wakers[pid], scripts[pid]), pid, 0) for pid in woke]


def named(names: Mapping[int, str]) -> dict[int, str]:
    """Names of processes, by pid, with the scripts that they run; one that has another name now is another one."""
    same = [pid for pid, name in names.items() if name and procfs.comm(pid) == name]
    scripts = _scripts(same[:_WAKERS])
    return {pid: _with_script(name, scripts.get(pid, "")) for pid, name in names.items()}


def _scripts(pids: Collection[int]) -> dict[int, str]:
    """Scripts that interpreters run, by pid; processes that do not answer are left out."""
    lines = heads(pids, (("cmdline", _COMMAND_LINE),)) if pids else {}
    return {pid: script_of((line or b"").split(b"\0")) for pid, (line,) in lines.items()}


def _with_script(name: str, script: str) -> str:
    return f"{name} {script}" if script and script[:_COMM] != name else name


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
