"""Processes for which those of the scope wait: with `Scope.peers` they are traced, too, from when that is seen.

Who waits for a server that is slow learns only from the server's own threads what it waits for.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, cast

from ....converters.model.remarks import Comment, Joined
from ...base import procfs
from ...kernel.records import BLOCKED, ThreadRecord
from ...measures.wakeup import WakeUp
from .probes import Probes
from .waited_for import WaitedFor

if TYPE_CHECKING:
    from .measures.wakeup import WakeUpCollector

_OFTEN = 0.5
"""Seconds between two looks at first."""
_RARELY = 0.1
"""Share of the time so far, between two looks of a longer trace: who joined has to wait for others first."""
_LOOK_SHARE = 0.05
"""Maximum share of time spent looking: there may be very many waits."""
_LEAST = 0.1
"""Share of a thread's time that it waited for the process."""
_MOST = 8
"""Processes that join a trace, and live."""
_INIT = 1
_NSEC = 1_000_000_000


class Peers:
    """Looks for such processes now and then."""

    def __init__(
        self,
        engine: Probes,
        objects: WaitedFor,
        ours: Callable[[], Collection[int]],
        for_locks: Callable[[], Mapping[tuple[int, int], int]] = dict,
    ) -> None:
        """``ours``: processes of the tracer. ``for_locks``: ns of waits for locks on files, by who waits and who has
        the lock: it ends no wait before it gives the lock back, and none of who asks again and again."""
        found = [cast("WakeUpCollector", each) for each in engine.options.collectors if each.name == WakeUp.name]
        self._wakeups = found[0] if found else None
        self._engine, self._objects, self._ours, self._for_locks = engine, objects, ours, for_locks
        self._began = 0
        """Beginning of the present interval (CLOCK_MONOTONIC ns); 0: that of the trace."""
        self._next = _OFTEN
        """Seconds from there until the next look."""
        self._joined: dict[int, tuple[str, int]] = {}
        """Names of processes that have joined, and when (CLOCK_MONOTONIC ns)."""

    def newcomers(self) -> set[int]:
        """Processes that shall join the trace now; none most of the time. Called repeatedly."""
        if self._wakeups is None:
            return set()
        now = time.monotonic_ns()
        since = now - (self._began or self._engine.began)
        if since < self._next * _NSEC:
            return set()
        found = self._found(now, since)
        took = time.monotonic_ns() - now
        self._next = since / _NSEC + max(_OFTEN, _RARELY * since / _NSEC, took / _NSEC / _LOOK_SHARE)
        return found

    def _found(self, now: int, since: int) -> set[int]:
        assert self._wakeups
        room = _MOST - sum(map(_lives, self._joined))
        if room <= 0:
            return set()
        self._wakeups.drain()
        waited = self._wakeups.ended_by(self._objects.others)
        threads = self._engine.living()
        _add_open(waited, threads, self._objects, now)
        waited.update(self._for_locks())
        traced = {record.thread.key.tgid for record in threads}
        callers = procfs.ancestors(os.getpid())
        left_out = {*traced, *self._joined, *self._ours(), *callers, os.getpid(), _INIT}
        wanted = [pid for pid in _longest(waited, round(since * _LEAST)) if pid not in left_out]
        new = [pid for pid in wanted if _lives(pid) and not procfs.is_of_kernel(pid)][:room]
        self._joined |= {pid: (procfs.comm(pid), now) for pid in new}
        return set(new)

    def cut(self, at: int) -> None:
        """The next interval begins: waits are added up from there."""
        self._began, self._next = at, _OFTEN
        self._joined = {pid: joined for pid, joined in self._joined.items() if _lives(pid)}

    def remarks(self, began: int) -> list[Comment]:
        """Remarks on who has joined. ``began``: beginning of the interval that they are for."""
        return [Joined(name, pid, max(at - began, 0)) for pid, (name, at) in self._joined.items()]


def _add_open(waited: Counter[tuple[int, int]], threads: Iterable[ThreadRecord], objects: WaitedFor, now: int) -> None:
    """Adds waits that have not ended: for the process at the other end of what the thread waits for, if it is one."""
    for thread in (record.thread for record in threads):
        if thread.phase == BLOCKED and thread.key.object:
            others = objects.others(thread.key.object) - {thread.key.tgid}
            if len(others) == 1:
                waited[thread.key.tid, others.pop()] += max(now - thread.out, 0)


def _longest(waited: Counter[tuple[int, int]], least: int) -> list[int]:
    """Processes for which a thread waited for so many ns, those for which threads waited longest first."""
    sums: Counter[int] = Counter()
    enough = set()
    for (_, pid), time_waited in waited.items():
        sums[pid] += time_waited
        if time_waited >= least:
            enough.add(pid)
    return [pid for pid, _ in sums.most_common() if pid in enough]


def _lives(pid: int) -> bool:
    return procfs.state(pid) not in ("", "Z", "X")
