"""Cuts a trace into intervals, each of which is a profile of its own: the boundaries, and who writes the profiles."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence

from ....converters.base.units import duration
from ...kernel.records import ThreadRecord
from ...kernel.shared_memory import store_u64, unmap
from .probes import Probes

_NEXT = 8
"""Offset in struct cuts (bpf/include/records.h), whose first field is the last boundary."""
_NOTICE = 500_000_000
"""Minimum time in ns between the announcement of a boundary and the boundary, by which the programs must know it, even
if this process has to wait for a core in between."""
_MUCH = 4
"""Divisor of the memory: once writers take that part of it, no other one begins."""


class Intervals:
    """The boundaries of a trace. The lowest bit of each is the slot of the tables that it begins: see `SumTable`."""

    def __init__(self, engine: Probes, every: float, most: int = 2) -> None:
        """A boundary is due ``every`` so many seconds. ``most``: processes that write profiles at a time; while they
        are behind, the interval goes on."""
        self._engine = engine
        self._memory = mmap.mmap(engine.object.find_map("cuts").fd, mmap.PAGESIZE)
        self._every = round(every * 1e9)
        self._most = most
        self._writers: dict[int, int] = {}
        """Processes that write profiles, and the bytes that each may take."""
        self.ours: set[int] = set()
        """The processes that wrote profiles in the present interval. Later, their ids may be those of others."""
        self.beside: set[int] = set()
        """Processes that these have started."""
        self.failed = 0
        """Profiles that were not written."""
        self.late = 0
        """Maximum time in ns by which a boundary was announced too late: the accounts are inexact by that much."""
        self.boundary = 0
        """The last boundary, as the probes know it; 0 in the first interval."""
        self._next = 0
        self._number = 0

    def due(self) -> int:
        """The boundary that has passed, or 0. To be called often: it announces them."""
        self._reap()
        now = time.monotonic_ns()
        if not self._next and self._may_write():
            self._number += 1
            at = max((self.boundary or self._engine.began) + self._every, now + _NOTICE)
            self._next = at & ~1 | self._number & 1
            self._announce(self._next)
            self.late = max(self.late, time.monotonic_ns() - self._next)
        return self._next if self._next and now > self._next else 0

    @property
    def announced(self) -> int:
        """The boundary that comes next, as the probes know it; 0: none is announced."""
        return self._next

    @property
    def taken(self) -> int:
        """Bytes that the processes may take that are writing profiles."""
        return sum(self._writers.values())

    def _may_write(self) -> bool:
        if not self._writers:
            return True
        return len(self._writers) < self._most and self.taken * _MUCH < self._engine.options.memory

    def note(self, threads: Sequence[ThreadRecord]) -> None:
        """Takes in which processes there were in the present interval."""
        self.beside = started_by(self.ours, self.beside, threads)

    def passed(self, threads: Sequence[ThreadRecord] = ()) -> None:
        """The interval that ended at the boundary has been read completely; it had these threads."""
        self.note(threads)
        self.boundary = self._next
        store_u64(self._memory, 0, self.boundary)
        self._next = 0

    def withdraw(self) -> int:
        """Announces no more boundaries. Returns one that has passed, and is to be read, or 0."""
        if self._next - time.monotonic_ns() > _NOTICE // 2:
            self._announce(self.boundary)
            self.late = max(self.late, time.monotonic_ns() - self._next)
            self._next = 0
        while time.monotonic_ns() <= self._next:
            time.sleep(_NOTICE / 500e9)
        return self._next

    def remarks(self) -> list[str]:
        """Remarks for the reader of a profile."""
        if not self.late:
            return []
        return [
            f"the tracer had no core when an interval ended: its accounts are inexact by up to {duration(self.late)}"
        ]

    def _announce(self, boundary: int) -> None:
        store_u64(self._memory, _NEXT, boundary)

    def write(self, publish: Callable[[], None], size: int = 0) -> None:
        """Calls ``publish`` in a process of its own, which takes ``size`` bytes at most."""
        for stream in (sys.stdout, sys.stderr):
            if stream:
                stream.flush()
        pid = os.fork()
        if pid:
            self._writers[pid] = size
            self.ours = set(self._writers)
            return
        status = 1
        try:
            # Ctrl-C ends the trace, not what is being written.
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            os.setpriority(os.PRIO_PROCESS, 0, max(os.getpriority(os.PRIO_PROCESS, 0), 0))
            publish()
            status = 0
        except OSError as error:
            _tell(str(error))
        except Exception:
            # Its parent knows only that an interval is missing.
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):  # whoever read it is gone
                    if stream:
                        stream.flush()
            os._exit(status)

    def _reap(self, options: int = os.WNOHANG) -> None:
        for pid in list(self._writers):
            done, status = os.waitpid(pid, options)
            if done:
                del self._writers[pid]
                self.failed += bool(status)
                if os.WIFSIGNALED(status):  # else it has told why itself
                    _tell(f"the process that wrote it was killed by signal {os.WTERMSIG(status)}")

    def close(self) -> None:
        """Waits for the profiles that are being written."""
        self._reap(0)
        unmap(self._memory)


def started_by(writers: set[int], before: set[int], threads: Sequence[ThreadRecord]) -> set[int]:
    """Processes among those of ``threads``, an interval, that ``writers`` have started, with their descendants.

    ``before``: those of the last interval, of which some still run."""
    made = [(record.thread.key.tgid, record.thread.creator) for record in threads if record.thread.creator]
    ours = writers | before
    while more := {tgid for tgid, creator in made if creator in ours} - ours:
        ours |= more
    return (ours - writers).intersection(record.thread.key.tgid for record in threads)


def _tell(cause: str) -> None:
    """Says on standard error, if anybody reads it, why there is one interval less."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        print(f"an interval is missing: {cause}", file=sys.stderr, flush=True)
