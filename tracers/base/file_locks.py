"""Looks now and then who waits for a lock on a file, and who has it, while a trace goes on."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, replace
from operator import attrgetter

from ...converters.model.file_locks import FCNTL, OPEN_FILE, READ, FileLock, LockAsker
from ...converters.model.remarks import Comment
from . import procfs
from .lock_table import ARROW, MOST, NOT_TOLD, Blocked, InTheWay, Lock, Refused, blocked_in, is_enough
from .neighbours import named
from .open_files import holders, opened, path_of

TABLE = "/proc/locks"
LOST_REQUESTS, LOST_LOOKS = "refused requests for locks on files", "looks at waits for locks on files"
"""Kinds of losses: more requests, or more waits, than there is room or time for."""
_BYTES = 1 << 20
"""Size of the table that is read: later locks are left out, and that is told."""
_SOON, _SELDOM = 0.25, 1.0
"""Seconds between two looks: while somebody waits, and else."""
_RECENT = 1_250_000_000
"""ns in which a process that was refused a lock still waits for it, unless it has it by then: many sleep for a second
before they ask again, and that takes a little longer."""
_SHARE = 0.02
"""Maximum share of time spent looking: while the kernel writes the table, nobody takes or gives back a lock. What is
found in it costs, too."""
_MOST = 1024
"""Pairs of a process that waits and an owner."""
_THREADS = 512
"""Threads of a process that ask for a lock."""
_FILES = 64
"""Files whose paths are looked for."""
_CANDIDATES = 64
"""Processes of which one may be the one that waits for the lock of an open file."""
_SLICE = 0.05
"""Maximum seconds of a look spent on open files: others come with the next look."""
_SEARCH = 0.2
"""Maximum seconds of the search for processes that share locks."""


@dataclass(slots=True)
class _Seen:
    lock: Lock
    first: int
    last: int
    times: int = 0
    time: int = 0
    """ns for which it waits, as the looks show it: see `FileLocks.waited`."""
    name: str = ""
    """Name of the process that waits."""
    owner: str = ""
    others: int = 0


_Key = tuple[int, int, str, int, int]
"""Pid of the process that waits, pid of the owner, the kind, the device, and the inode."""


_Part = tuple[str, int, int, int]
"""A lock that was waited for: the kind, the device, the inode, and the first byte."""


class FileLocks:
    """Looks of one trace. The kernel needs some milliseconds for each: they are done in a thread of their own."""

    def __init__(
        self,
        traced: Container[int] | None,
        *,
        looks: bool = True,
        refused: Callable[[], list[Refused]] = list,
    ) -> None:
        """``traced``: processes of whose waits is told; None: of all. Without ``looks`` nothing is done. ``refused``:
        takes the requests that were refused since the last call."""
        self._traced, self._is_on, self._refused = traced, looks, refused
        self._requests: list[Refused] = []
        self._recent: dict[Lock, Refused] = {}
        """The last request for each lock that is recent."""
        self._seen: dict[_Key, _Seen] = {}
        self._looks: list[int] = []
        """Times of the looks: CLOCK_MONOTONIC ns."""
        self._paths: dict[tuple[int, int], str] = {}
        self._sharers: dict[tuple[str, int, int], set[int]] = {}
        self._crowds: dict[_Part, tuple[int, int]] = {}
        """Looks at which somebody waited for a lock, and how many waits there were, added up."""
        self._numbers: dict[tuple[int, str, int, int], dict[int, LockAsker]] = {}
        """Requests that were refused, by pid, kind, device and inode, and then by thread."""
        self._asked: dict[tuple[int, str, int, int, int], int] = {}
        """Times of the last ones: CLOCK_MONOTONIC ns."""
        self._waiters: dict[tuple[int, int], int] = {}
        """Processes that wait for locks of open files, by the file."""
        self._next = self._until = 0.0
        self._thread: threading.Thread | None = None
        self._read: tuple[int, bytes, float] | None = None
        self._was_cut = False
        self._lost: Counter[str] = Counter()

    def poll(self) -> None:
        """Takes in a look that is done, and begins the next one when it is due. To be called often."""
        if self._thread and not self._thread.is_alive():
            self._take_in()
        if self._is_on and self._thread is None and time.monotonic() >= self._next:
            self._requests = self._refused()
            self._thread = threading.Thread(target=self._look, daemon=True)
            self._thread.start()

    def finish(self) -> None:
        """Looks for the last time, and then for processes that share locks which are still waited for."""
        if not self._is_on:
            return
        if self._thread:
            self._thread.join(_SELDOM)
            if self._thread.is_alive():
                return
            self._take_in()
        self._requests = self._refused()
        self._look()
        self._take_in()
        last = self._looks[-1] if self._looks else 0
        until = time.monotonic() + _SEARCH
        for seen in [each for each in self._seen.values() if each.last == last]:
            lock = seen.lock
            path, key = self._path_of(lock, until), _file_of(lock)
            if path and lock.kind != FCNTL and key not in self._sharers and time.monotonic() < until:
                self._sharers[key] = holders(lock, path, procfs.pids(), until)

    def _path_of(self, lock: Lock, until: float) -> str:
        """Path of the file; if who took the lock has ended, or is not told, as those opened it who have it now."""
        key = lock.device, lock.inode
        is_inherited = lock.kind == OPEN_FILE if lock.pid == NOT_TOLD else not procfs.comm(lock.pid)
        if not self._paths.get(key) and is_inherited and lock.kind != FCNTL:
            # Who inherited it is often younger than who took it, and seldom much so.
            likely = sorted(procfs.pids(), key=lambda pid: (pid < lock.pid, abs(pid - lock.pid)))
            self._paths[key] = path_of(lock, likely, until)
        return self._paths.get(key, "")

    def remarks(self) -> list[Comment]:
        """Remarks on what was not seen."""
        told = f"{TABLE} is longer than {_BYTES >> 20} MiB: who has later locks, or waits for them, was not seen"
        return [told] if self._was_cut else []

    def losses(self) -> dict[str, int]:
        """Numbers of what was left out, by kind."""
        return {kind: number for kind, number in self._lost.items() if number}

    def next(self) -> None:
        """Begins an interval: what was seen before it is of another profile."""
        self._seen.clear()
        self._looks.clear()
        self._crowds.clear()
        self._numbers.clear()
        self._asked.clear()
        self._lost.clear()
        self._was_cut = False

    def waited(self) -> dict[tuple[int, int], int]:
        """Time in ns for which processes were seen to wait for locks, at the last look, too: by their pid, and that of
        the owner. Between two looks at which one waits, the time counts; if it did not at the first of them, half."""
        last = self._looks[-1] if self._looks else 0
        found: dict[tuple[int, int], int] = {}
        for (waiter, owner, *_), seen in self._seen.items():
            if owner and seen.last == last:
                found[waiter, owner] = max(seen.time, found.get((waiter, owner), 0))
        return found

    def found(self, traced: Container[int] | None, began: int, ended: int) -> list[FileLock]:
        """Waits that were seen of these processes, and of those for whom they wait; None: of all. Times of the trace
        are CLOCK_MONOTONIC ns."""
        looks = sum(began <= at <= ended or at == self._looks[-1] for at in self._looks if at >= began)
        kept = self._of(traced)
        names = named({key[1]: seen.owner for key, seen in kept.items() if seen.owner})
        return [self._made(key, seen, looks, began, names) for key, seen in kept.items() if seen.last >= began]

    def _of(self, traced: Container[int] | None) -> dict[_Key, _Seen]:
        """Waits of these processes, of those for whom they wait, and so on."""
        if traced is None:
            return dict(self._seen)
        asked = {key[0] for key in self._seen if key[0] in traced}
        while more := {key[1] for key in self._seen if key[0] in asked} - asked:
            asked |= more
        return {key: seen for key, seen in self._seen.items() if key[0] in asked}

    def _made(self, key: _Key, seen: _Seen, looks: int, began: int, names: dict[int, str]) -> FileLock:
        waiter, owner, kind, device, inode = key
        having = self._sharers.get(_file_of(seen.lock), set()) - {waiter}
        name, ended = names.get(owner, seen.owner), False
        if having and owner not in having:
            # Who took it has ended, or the kernel does not tell.
            ended, owner = owner != NOT_TOLD, min(having)
            name = named({owner: procfs.comm(owner)}).get(owner, "")
        elif not seen.owner:
            ended = owner != NOT_TOLD
        # The kernel does not tell who has taken one: each may have taken its own.
        may_be_own = kind == OPEN_FILE and seen.lock.access == READ
        asked = self._numbers.get((waiter, kind, device, inode), {})
        return FileLock(
            kind,
            seen.name,
            waiter,
            name,
            owner,
            ended,
            0 if may_be_own else len(having - {owner}),
            self._paths.get((device, inode), ""),
            device,
            inode,
            seen.lock.first,
            seen.lock.last,
            seen.lock.access,
            seen.times,
            max(looks, seen.times),
            max(seen.first - began, 0),
            max(seen.last - began, 0),
            *self._crowds.get(_part_of(seen.lock), (0, 0)),
            sum(each.requests for each in asked.values()),
            [replace(asked[tid]) for tid in sorted(asked)],
            len(having - {owner}) if may_be_own else seen.others,
        )

    def _look(self) -> None:
        at, began = time.monotonic_ns(), time.thread_time()
        text = _table()
        # Of this thread: while it waits for a core, it keeps no lock from anybody.
        self._read = at, text, time.thread_time() - began

    def _take_in(self) -> None:
        self._thread = None
        if self._read is None:
            return
        (at, text, cost), self._read = self._read, None
        began = time.thread_time()
        self._looks.append(at)
        self._was_cut |= len(text) >= _BYTES
        self._add_requests(at - _RECENT)
        self._until = time.monotonic() + _SLICE
        blocked = self._blocked(text)
        wait = False
        crowds: Counter[_Part] = Counter()
        for each in blocked:
            if self._add(each, at):
                wait = True
                crowds[_part_of(each.owner)] += 1
        self._add_crowds(crowds)
        cost += time.thread_time() - began
        self._next = time.monotonic() + max(_SOON if wait else _SELDOM, cost / _SHARE)

    def _blocked(self, text: bytes) -> list[Blocked]:
        """Processes that wait, in the kernel or between two requests."""
        told = blocked_in(text)
        if len(told) == MOST:
            self._lost[LOST_LOOKS] += max(text.count(ARROW) - MOST, 0)
        waiting = self._resolved(told)
        ways = InTheWay(text, [*(each.waiter for each in waiting), *self._recent])
        refused = [each for each in ways.refused(self._recent.values()) if self._wants(each.waiter)]
        blocked = ways.with_others(waiting + refused)
        self._lost[LOST_LOOKS] += ways.left_out
        return blocked

    def _add(self, each: Blocked, at: int) -> bool:
        """Returns whether it is of a traced process."""
        waiter, owner, others = each
        is_traced = self._traced is None or waiter.pid in self._traced
        key = waiter.pid, owner.pid, owner.kind, owner.device, owner.inode
        seen = self._seen.get(key)
        if seen is None:
            if len(self._seen) >= _MOST:
                self._lost[LOST_LOOKS] += is_traced
                return is_traced
            name, of_owner = procfs.comm(waiter.pid), procfs.comm(owner.pid) if owner.pid else ""
            seen = self._seen[key] = _Seen(owner, at, at, name=name, owner=of_owner)
        if is_traced:
            self._find_path(waiter, owner)
        if seen.last != at or not seen.times:  # several threads of a process may wait
            if seen.times:
                before = self._looks[-2]
                seen.time += (at - before) // (1 if seen.last == before else 2)
            seen.last, seen.times, seen.others = at, seen.times + 1, others
        return is_traced

    def _add_requests(self, since: int) -> None:
        """``since``: CLOCK_MONOTONIC ns; requests are no longer recent before it."""
        for request in self._requests:
            self._count(request)
        requests = sorted((*self._recent.values(), *self._requests), key=attrgetter("at"))
        latest = {each.wish: each for each in requests if each.at >= since}
        self._lost[LOST_LOOKS] += max(len(latest) - _MOST, 0)
        self._recent = dict(sorted(latest.items(), key=lambda item: item[1].at)[-_MOST:])

    def _count(self, request: Refused) -> None:
        key = request.wish.pid, *_file_of(request.wish)
        if key not in self._numbers and len(self._numbers) == _MOST:
            self._lost[LOST_REQUESTS] += request.number
            return
        threads = self._numbers.setdefault(key, {})
        if request.tid not in threads and len(threads) == _THREADS:
            self._lost[LOST_REQUESTS] += request.number
            return
        asker = threads.setdefault(request.tid, LockAsker(request.tid, 0))
        asker.requests += request.number
        of_thread = (*key, request.tid)
        last = self._asked.get(of_thread, 0)
        if 0 < request.at - last <= _RECENT:
            asker.gaps += request.number
            asker.gaps_ns += request.at - last
        self._asked[of_thread] = request.at

    def _add_crowds(self, crowds: Counter[_Part]) -> None:
        for part, waiting in crowds.items():
            if part in self._crowds or len(self._crowds) < _MOST:
                looks, sums = self._crowds.get(part, (0, 0))
                self._crowds[part] = looks + 1, sums + waiting

    def _find_path(self, waiter: Lock, owner: Lock) -> None:
        """Finds the path with which who waits has opened the file; who asks again and again may open it each time."""
        key = waiter.device, waiter.inode
        if key not in self._paths and len(self._paths) < _FILES and time.monotonic() < self._until:
            found = opened(waiter.pid, *key) or (opened(owner.pid, *key) if owner.pid else None)
            self._paths[key] = found.path if found else ""

    def _resolved(self, blocked: Iterable[Blocked]) -> list[Blocked]:
        """Processes that wait; for the lock of an open file, of which the kernel tells no process, the only traced one
        that has the file open without having the lock."""
        found = []
        for waiter, owner, _ in blocked:
            if waiter.pid:
                found.append(Blocked(waiter, owner))
            elif waiter.kind == OPEN_FILE and (pid := self._waiter_of(waiter)):
                found.append(Blocked(waiter._replace(pid=pid), owner))
        return found

    def _wants(self, wish: Lock) -> bool:
        """Whether the process does not have by now what it wished for: of locks of open files only the open file tells,
        and there may be no time to look at it."""
        if wish.kind != OPEN_FILE:
            return True
        if time.monotonic() >= self._until:
            self._lost[LOST_LOOKS] += 1
            return False
        file = opened(wish.pid, wish.device, wish.inode)
        return not file or not any(is_enough(lock, wish) for lock in file.locks)

    def _waiter_of(self, wish: Lock) -> int:
        pids = list(self._traced) if isinstance(self._traced, dict) else []
        if not 0 < len(pids) <= _CANDIDATES:
            return NOT_TOLD
        key = wish.device, wish.inode
        known = self._waiters.get(key, NOT_TOLD)
        if known in pids and (file := opened(known, *key)) and not file.locks:
            return known
        waiting = []
        for pid in pids:
            if time.monotonic() >= self._until:
                return NOT_TOLD
            if (file := opened(pid, *key)) and not file.locks:
                waiting.append(pid)
        self._waiters[key] = waiting[0] if len(waiting) == 1 else NOT_TOLD
        return self._waiters[key]


def _file_of(lock: Lock) -> tuple[str, int, int]:
    return lock.kind, lock.device, lock.inode


def _part_of(lock: Lock) -> _Part:
    return lock.kind, lock.device, lock.inode, lock.first


def _table() -> bytes:
    """The beginning of the table; b"" where there is none, or it may not be read."""
    parts, left = [], _BYTES
    try:
        with open(TABLE, "rb", buffering=0) as file:
            while left > 0 and (part := os.read(file.fileno(), min(left, 1 << 16))):
                parts.append(part)
                left -= len(part)
    except OSError:
        return b""
    return b"".join(parts)
