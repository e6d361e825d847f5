"""Under which conditions processes run: the cores they may use, what their control groups allow, and how many threads
their environment tells libraries to make.

Processes change these, and end while they are traced: each is looked at when it is seen first, now and then, and at the
end if it is still there.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ...converters.model.processes import THREAD_VARIABLES, CpuLimit, cpu_list
from .cgroups import Cgroups
from .procfs import PROC, tids

_MOST = 1 << 14
"""Processes; of more, nothing is said."""
_THREADS = 256
"""Threads of a process whose cores are asked for."""
_ENVIRONMENT = 1 << 18
"""Bytes of it that are searched."""
_VALUE = 40
"""Bytes of a variable's value that are kept."""
_GRACE, _SHARE = 0.2, 0.03
"""Seconds, and the share of the trace's time, that go into looking, at most."""
_FINAL = 0.5
"""Seconds for the last look at all."""
_REFRESH = 0.5
"""Seconds between two looks at processes and groups that are known."""
_SLICE = 0.01
"""Seconds for looking, until something else is done."""


@dataclass(frozen=True, slots=True)
class Condition:
    """Of one process; see `ProcessTimes`."""

    cpus: str = ""
    limits: tuple[CpuLimit, ...] = ()
    environment: dict[str, str] | None = None


_UNKNOWN = Condition()


class Conditions:
    """Of all processes of a trace."""

    def __init__(self, cgroups: Cgroups | None = None) -> None:
        self._cgroups = cgroups or Cgroups()
        self._known: dict[int, tuple[Condition, tuple[bytes, ...]]] = {}
        """With the folders of their control groups."""
        self._waiting: deque[int] = deque()
        self._alive: deque[int] = deque()
        """Longest not looked at first."""
        self._began = self._looked = time.monotonic()
        self._spent = 0.0

    def look(self, pid: int) -> None:
        """A process came, or began another program. Where there is no time for it, what was known of it stays."""
        if self._is_spent():
            return
        begin, is_new = time.monotonic(), pid not in self._known
        if self._look(pid) and is_new:
            self._alive.append(pid)
        self._spent += time.monotonic() - begin

    def look_soon(self, pids: Iterable[int]) -> None:
        """At processes that are taken in together, if they are not known yet: a host has thousands."""
        self._waiting.extend(pid for pid in pids if pid not in self._known)
        self._look_at_waiting()

    def _look_at_waiting(self) -> None:
        until = time.monotonic() + _SLICE
        while self._waiting and not self._is_spent() and time.monotonic() < until:
            self.look(self._waiting.popleft())

    def _is_spent(self) -> bool:
        return self._spent > _GRACE + _SHARE * (time.monotonic() - self._began)

    def forked(self, parent: int, pid: int) -> None:
        """A new process has the conditions of its parent, until it changes them itself."""
        if parent in self._known and len(self._known) < _MOST:
            self._known[pid] = self._known[parent]
            self._alive.append(pid)
        else:
            self._known.pop(pid, None)
            self.look(pid)

    def poll(self) -> None:
        """While the trace runs."""
        self._look_at_waiting()
        now = time.monotonic()
        if now >= self._looked + _REFRESH:
            self._cgroups.look()
            for _ in range(len(self._alive)):
                if not self._look(pid := self._alive.popleft()):
                    continue  # it is gone
                self._alive.append(pid)
                if time.monotonic() >= now + _SLICE:
                    break
            self._looked = time.monotonic()

    def finish(self, pids: Iterable[int]) -> dict[int, Condition]:
        """The last look at those of ``pids`` that are still there, the first ones first; what is known of all."""
        until = time.monotonic() + _FINAL
        self._cgroups.look()
        pids = list(pids)
        for pid in pids:
            if time.monotonic() >= until:
                break
            self._look(pid)
        found = {}
        for pid in pids:
            condition, folders = self._known.get(pid, (_UNKNOWN, ()))
            found[pid] = replace(condition, limits=self._cgroups.limits(folders))
        return found

    def _look(self, pid: int) -> bool:
        """Whether it is there, and known."""
        if pid not in self._known and len(self._known) >= _MOST:
            return False
        cpus = allowed_cpus(pid)
        if not cpus:
            return False
        environment = thread_variables(pid)
        if environment is None and pid in self._known:
            return False  # one of the kernel's, or on its way out, and in no group any more
        groups = self._cgroups.of(_read(pid, "cgroup", _ENVIRONMENT) or b"")
        self._known[pid] = Condition(cpus, environment=environment), groups
        return True


def allowed_cpus(pid: int) -> str:
    """The cores that any of its threads may use, by its affinity and its cpuset; "" when it is gone."""
    found: set[int] = set()
    for tid in tids(pid)[:_THREADS]:
        try:
            found |= os.sched_getaffinity(tid)
        except OSError:
            continue
    return cpu_list(found)


def thread_variables(pid: int) -> dict[str, str] | None:
    """Those of `THREAD_VARIABLES` that the process was started with; None when that cannot be read.

    What it set itself later is not seen. The text is the process's own: any bytes.
    """
    data = _read(pid, "environ", _ENVIRONMENT)
    if not data:  # of a zombie, or one of the kernel's, it is empty
        return None
    found: dict[str, str] = {}
    for entry in data.split(b"\0"):
        name, equals, value = entry.partition(b"=")
        text = name.decode("ascii", errors="replace")
        if equals and text in THREAD_VARIABLES:
            kept = value if len(value) <= _VALUE else value[:_VALUE] + b"..."
            found.setdefault(text, os.fsdecode(kept))  # getenv(3) takes the first
    return found


def _read(pid: int, name: str, most: int) -> bytes | None:
    try:
        with open(PROC / str(pid) / name, "rb") as file:
            return file.read(most)
    except OSError:
        return None
