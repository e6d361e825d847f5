"""Complete user stacks: the loader gets the tables that the probes' walks miss, and they are used at once."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING

from ...base import procfs
from ...images.elf import ElfError, ElfFile, FileSource
from ...images.files import HOST
from ...images.maps import Mapping
from ...images.vdso import image
from ...symbols.process import ProcessSpaces
from ...unwind.counts import Counts
from ...unwind.loader import VDSO, Loader
from ...unwind.store import Store

if TYPE_CHECKING:
    from .probes import Probes

_EPOCH = 2.0
"""Seconds per epoch, the resolution of a table's last use."""
_SOON, _LATER = 0.1, 5.0
"""Least and most seconds until a process whose walks miss a mapping is examined again: wrong walks always miss one."""
_SLICE = 0.05
"""Seconds spent on reading mappings between two looks at the rings: a host may have thousands of processes."""
_SHARE = 0.1
"""Maximum share of time for walking waiting threads again, and for reading the mappings of one process."""


class Unwinding:
    """Keeps the probes' tables up to date with the mappings of the traced processes."""

    def __init__(self, engine: Probes, spaces: ProcessSpaces, budget: int) -> None:
        self._engine = engine
        self._spaces = spaces
        self._store = Store(engine.object, budget)
        self.loader = Loader(self._store, self._find)
        self._next_epoch = 0.0
        self._next_restack = 0.0
        self._stale = False
        self._to_read: set[int] = set()
        self._to_tell: set[int] = set()
        """Processes whose mappings are to be read, or only passed to the probes."""
        self._busy_until: dict[int, float] = {}
        """Earliest time of the next read, by process."""
        self._to_look: dict[int, float] = {}
        """Processes whose walks missed a mapping, and when to examine them."""
        self._looks: dict[int, tuple[float, float]] = {}
        """Time when a process may be examined again, and how long to wait after that, by process."""
        self._expected: list[int] = []
        """Open files that were not mapped yet when their tables were requested."""
        self._leaderless: set[int] = set()
        """Processes whose main thread has ended, but not all others."""
        self._generation = 0
        self._advance()

    @property
    def counts(self) -> Counts:
        """Counts of what has been loaded so far."""
        return self.loader.counts

    @property
    def fd(self) -> int:
        """Readable when `poll` has something to do."""
        return self.loader.ready

    def expect_vdso(self) -> None:
        """Requests the table of the vDSO, which every program has."""
        self.loader.expect(os.getpid(), Mapping(0, 4096, path=VDSO))

    def expect_file(self, path: str) -> None:
        """Requests the table of a path that will be mapped, if it is a file."""
        if not self._spaces.descriptors.take():
            return
        try:
            fd = HOST.open_regular(path)
        except (OSError, ValueError):
            self._spaces.descriptors.give_back()
            return
        self._expected.append(fd)
        with contextlib.suppress(ElfError):
            self.loader.expect_file(ElfFile(FileSource(fd)), path)

    def begin(self) -> None:
        """The trace begins."""
        self.loader.begin()
        self._stale = True

    def began(self, pid: int) -> None:
        """A process began another program."""
        self.loader.forget(pid)
        self._to_read.add(pid)
        self._looks.pop(pid, None)
        self._to_look.pop(pid, None)

    def mapped(self, pid: int, mapping: Mapping, time_ns: int) -> None:
        """A process has mapped code: the next `poll` tells the probes."""
        (self._to_tell if self.loader.map(pid, mapping, time_ns) else self._to_read).add(pid)

    def exited(self, pid: int) -> None:
        """Notes that its main thread has ended, and usually the whole process."""
        if _others_live(pid):
            self._leaderless.add(pid)
        else:
            self._gone(pid)

    def _gone(self, pid: int) -> None:
        self.loader.unmap(pid)
        self._leaderless.discard(pid)
        self._to_read.discard(pid)
        self._to_tell.discard(pid)
        self._looks.pop(pid, None)
        self._to_look.pop(pid, None)
        self._busy_until.pop(pid, None)

    def restack_soon(self) -> None:
        """The next `poll` walks waiting threads again."""
        self._stale = True

    def poll(self) -> None:
        """Loads what walks missed; walks waiting threads again when tables were loaded."""
        now = time.monotonic()
        if now >= self._next_epoch:
            self._next_epoch = now + _EPOCH
            self._engine.object.set_variable("unwind_epoch", self.loader.next_epoch())
            self._look_after_leaderless()
        wanted = self._store.take_wanted()
        for pid in wanted.pids:
            self._note(pid, now)
        self._look(now)
        for pid in [pid for pid in self._to_read | self._to_tell if self._busy_until.get(pid, 0.0) <= now]:
            self._tell(pid)
            if time.monotonic() - now >= 2 * _SLICE:
                break
        self.loader.missed(wanted.tables)
        self._stale |= self.loader.poll()
        if self._stale and self._engine.began and now >= self._next_restack:
            self._stale = False
            self._advance()
            begin = time.thread_time()
            self._engine.restack()
            self._next_restack = time.monotonic() + (time.thread_time() - begin) / _SHARE

    def close(self) -> None:
        """Releases the memory, and the descriptors of files for other uses."""
        self.loader.close()
        self._store.close()
        for fd in self._expected:
            os.close(fd)
            self._spaces.descriptors.give_back()
        self._expected = []

    def _advance(self) -> None:
        """Invalidates what the probes remember of incomplete stacks."""
        self._generation = self._generation % 0xFFFFFFFF + 1
        self._engine.object.set_variable("unwind_generation", self._generation)

    def _tell(self, pid: int) -> None:
        begin = time.thread_time()  # CPU time: what other threads do meanwhile does not count
        if pid not in self._to_read:
            self.loader.tell(pid)
            self._stale = True
        elif self.loader.read(pid):
            self._stale = True
        elif not procfs.state(pid):
            self._gone(pid)
            return
        self._to_read.discard(pid)
        self._to_tell.discard(pid)
        self._busy_until[pid] = time.monotonic() + (time.thread_time() - begin) / _SHARE

    def _look_after_leaderless(self) -> None:
        for pid in list(self._leaderless):
            if procfs.state(pid) not in ("", "Z", "X"):  # another process, or program
                self._leaderless.discard(pid)
                self.began(pid)
            elif not _others_live(pid):
                self._gone(pid)

    def _note(self, pid: int, now: float) -> None:
        """A walk missed a mapping of the process: it is examined, less and less often."""
        if pid in self._to_look:
            return
        after, wait = self._looks.get(pid, (0.0, _SOON / 2))
        # An unknown process: its fork event will come soon, and gives it its parent's mappings.
        self._to_look[pid] = max(after, now if pid in self._spaces.processes else now + _SOON)
        wait = min(wait * 2, _LATER)
        self._looks[pid] = (self._to_look[pid] + wait, wait)

    def _look(self, now: float) -> None:
        for pid, when in list(self._to_look.items()):
            known = pid in self._spaces.processes
            if now < when and not (known and pid not in self._busy_until):
                continue
            if time.monotonic() - now >= _SLICE:
                return
            del self._to_look[pid]
            if known:
                self._spaces.refresh(pid)
            else:
                self._spaces.adopt(pid)
            self._to_read.add(pid)

    def _find(self, pid: int, mapping: Mapping) -> ElfFile | None:
        if mapping.path == VDSO:
            return image()
        file = self._spaces.file_of(pid, mapping)
        return file.elf() if file is not None else None


def _others_live(pid: int) -> bool:
    """Whether a process has threads besides the main one."""
    return any(tid != pid and procfs.state(tid) not in ("", "Z", "X") for tid in procfs.tids(pid))
