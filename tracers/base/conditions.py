"""Conditions under which processes run: the cores they may use, the limits of their control groups, the number of
threads that their environment tells libraries to create, their rank in a job and their GPUs, and their origins.

Processes change these, and may end during the trace: each is examined when first seen, now and then, and at the end if
it still exists.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

from ...converters.model.origins import MEMORY, MOST_ANCESTORS, Ancestor, ProcessOrigin
from ...converters.model.pressure import Pressure
from ...converters.model.processes import THREAD_VARIABLES, CpuLimit, cpu_list
from ...converters.model.ranks import GPU, rank_of
from ..outside.reads import head, heads
from .cgroups import Cgroups
from .group_limits import GroupLimits
from .origins import Origins
from .procfs import PROC, tids
from .ranks import gpus_of, ranks_in
from .scripts import script_of

_MOST = 1 << 14
"""Maximum number of processes; others are not reported."""
_THREADS = 256
"""Maximum number of threads of a process that are asked for their cores."""
_ENVIRONMENT = 1 << 18
"""Maximum bytes that are searched."""
_COMMAND_LINE = 1 << 12
"""Maximum bytes in which a script is looked for: that of Java may be behind a long class path."""
_HEADS = (("environ", _ENVIRONMENT), ("cmdline", _COMMAND_LINE))
_VALUE = 40
"""Bytes of a variable's value that are kept."""
_GRACE, _SHARE = 0.2, 0.03
"""Maximum CPU time spent examining processes: seconds, plus a share of the trace's time. A wait for a process that does
not answer costs nothing, and `client` limits it: after one, the others are examined nevertheless."""
_FINAL = 0.5
"""Maximum seconds for the last look at all processes."""
_REFRESH = 0.5
"""Seconds between two looks at known processes and groups."""
_SLICE = 0.01
"""Maximum seconds of examining processes at a time."""


@dataclass(frozen=True, slots=True)
class Condition:
    """Conditions of one process; see `ProcessTimes`."""

    cpus: str = ""
    limits: tuple[CpuLimit, ...] = ()
    environment: dict[str, str] | None = None
    script: str = ""
    name: str = ""
    """The process's name at that time: if it has another one later, the script may be that of the program before."""

    ranks: dict[str, str] = field(default_factory=dict)
    """See `model.ranks`."""
    origin: ProcessOrigin | None = None


_UNKNOWN = Condition()


class Later(Protocol):
    """Search for ranks that processes got after they were started."""

    def poll(self) -> None:
        """Called repeatedly while the trace runs."""

    def finish(self) -> None:
        """Called when the trace has ended."""


class Conditions:
    """Conditions of all processes of a trace."""

    def __init__(self, cgroups: Cgroups | None = None) -> None:
        self._cgroups = cgroups or Cgroups()
        self._origins = Origins()
        self.later: Later | None = None
        """Search for ranks that processes got after they were started; None: there is none."""
        self.group_limits = GroupLimits()
        self._known: dict[int, tuple[Condition, tuple[bytes, ...]]] = {}
        """Conditions by pid, with the folders of the control groups."""
        self._waiting: deque[int] = deque()
        self._alive: deque[int] = deque()
        """Least recently examined first."""
        self._began = self._looked = time.monotonic()
        self._spent = 0.0

    def look(self, pid: int) -> None:
        """Examines a process that is new or began another program. If there is no time for it, known values stay."""
        if self._is_spent():
            return
        begin, is_new = time.thread_time(), pid not in self._known
        if self._look(pid) and is_new:
            self._alive.append(pid)
        self._spent += time.thread_time() - begin

    def look_soon(self, pids: Iterable[int]) -> None:
        """Examines unknown processes that are added together, as time permits: a host has thousands."""
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
            condition, groups = self._known[parent]
            self._known[pid] = replace(condition, origin=_of_child(parent, pid, condition)), groups
            self._alive.append(pid)
        else:
            self._known.pop(pid, None)
            self.look(pid)

    def replaced(self, pid: int, number: int) -> None:
        """The process of this pid ended, another one has the pid now: the first one is known by ``number``."""
        if pid in self._known:
            self._known[number] = self._known.pop(pid)
            self._alive = deque(known for known in self._alive if known != pid)

    def copy(self, pid: int, number: int) -> None:
        """Copies what is known of a process to others that it stands for; they are not all of its rank."""
        if pid in self._known:
            condition, groups = self._known[pid]
            self._known[number] = replace(condition, ranks={}, origin=None), groups

    def forget(self, pids: Iterable[int]) -> None:
        """Forgets processes that are gone."""
        for pid in pids:
            self._known.pop(pid, None)
        self._alive = deque(pid for pid in self._alive if pid in self._known)

    def poll(self) -> None:
        """Called repeatedly while the trace runs."""
        self._look_at_waiting()
        if self.later:
            self.later.poll()
        self.group_limits.poll()
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
        """Examines those of ``pids`` that still exist a last time, in order; returns what is known of all."""
        if self.later:
            self.later.finish()
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

    def pressure(self) -> list[Pressure]:
        """Pressure of the processes' control groups since they were first seen."""
        return self._cgroups.pressure()

    def _look(self, pid: int) -> bool:
        """Examines a process; returns whether it exists and is known."""
        if pid not in self._known and len(self._known) >= _MOST:
            return False
        cpus = allowed_cpus(pid)
        if not cpus:
            return False
        data, line = heads([pid], _HEADS).get(pid, (None, None))
        if not data and pid in self._known:
            return False  # a kernel thread, or exiting and no longer in a group
        environment, ranks = variables_in(data), ranks_in(data or b"") | self._gpus(pid)
        membership = _read(pid, "cgroup", _ENVIRONMENT) or b""
        groups = self._cgroups.of(membership)
        origin = self._origins.of(pid, data or b"", membership, has_rank=rank_of(ranks) is not None)
        if origin and rank_of(ranks) is None and (later := self._in_memory(pid, origin.began)):
            ranks, origin.source = later | ranks, MEMORY
        self.group_limits.add(pid, membership)
        script = script_of((line or b"").split(b"\0"))
        name = os.fsdecode(_read(pid, "comm", _VALUE) or b"").removesuffix("\n")
        self._known[pid] = Condition(cpus, (), environment, script, name, ranks, origin), groups
        return True

    def without_rank(self) -> list[tuple[int, ProcessOrigin]]:
        """Processes that are alive, and of which no rank is known, with their origins."""
        known = ((pid, self._known[pid][0]) for pid in self._alive if pid in self._known)
        return [(pid, each.origin) for pid, each in known if each.origin and rank_of(each.ranks) is None]

    def learn_ranks(self, pid: int, ranks: dict[str, str]) -> None:
        """Takes what the environment in the memory of a process says of its rank."""
        condition, groups = self._known.get(pid, (_UNKNOWN, ()))
        if condition.origin and rank_of(ranks) is not None:
            origin = replace(condition.origin, source=MEMORY)
            self._known[pid] = replace(condition, ranks=ranks | condition.ranks, origin=origin), groups

    def _in_memory(self, pid: int, began: int) -> dict[str, str]:
        """Labels that the memory of a process has given before; {} if that was another process."""
        condition, _ = self._known.get(pid, (_UNKNOWN, ()))
        before = condition.origin
        is_same = before is not None and before.source == MEMORY and before.began == began
        return {label: value for label, value in condition.ranks.items() if label != GPU} if is_same else {}

    def _gpus(self, pid: int) -> dict[str, str]:
        """GPUs of a process; once it has some, its files are not looked at again."""
        known, _ = self._known.get(pid, (_UNKNOWN, ()))
        return {GPU: known.ranks[GPU]} if GPU in known.ranks else gpus_of(pid)


def _of_child(parent: int, pid: int, condition: Condition) -> ProcessOrigin | None:
    """The origin of a process that was just forked, until it is looked at itself."""
    origin = condition.origin
    name = condition.name
    above = [Ancestor(parent, name), *origin.ancestors][:MOST_ANCESTORS] if origin else []
    return origin and replace(origin, pid=pid, ancestors=above, began=0)


def allowed_cpus(pid: int) -> str:
    """The cores that any of its threads may use, by affinity and cpuset; "" when the process is gone."""
    found: set[int] = set()
    for tid in tids(pid)[:_THREADS]:
        try:
            found |= os.sched_getaffinity(tid)
        except OSError:
            continue
    return cpu_list(found)


def thread_variables(pid: int) -> dict[str, str] | None:
    """The `THREAD_VARIABLES` that the process was started with; None when they cannot be read.

    Variables that it set later are not seen. Their values may be any bytes.
    """
    return variables_in(head(pid, "environ", _ENVIRONMENT))


def variables_in(data: bytes | None) -> dict[str, str] | None:
    """Variables in the bytes of /proc/PID/environ."""
    if not data:  # empty for zombies and kernel threads
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
