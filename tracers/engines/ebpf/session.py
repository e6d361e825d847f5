"""One trace from its first probe to its last record: engine, sideband, processes, and the reasons to stop."""

from __future__ import annotations

import bisect
import contextlib
import os
import select
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ...converters.errors import StallscopeError
from ..symbols.maps import Mapping
from ..symbols.process import ProcessSpaces
from ..unwind.loader import Counts
from . import procfs
from .engine import Engine
from .interrupts import Interrupts
from .launch import Launch
from .records import ExecRecord, RecordSink, ThreadRecord, WaitKey, WaitSum, parse_wait
from .scope import Scope
from .sideband import Event, Exec, Exit, Fork, Mmap, Sideband
from .unwinding import Unwinding

_POLL = 0.1
"""Seconds between two looks at the rings."""
_QUIET = 0.004
"""Seconds after a look at the rings in which no news wakes us, lest a storm of it keeps us busy."""
_LOOK_SHARE = 0.1
"""Of the time, at most, goes into looking for processes that come into the scope: a host may have thousands."""
_ADOPT_SLICE = 0.05
"""Seconds spent on reading maps of processes between two looks at the rings."""


@dataclass
class Capture:
    """What came out of the kernel. Times are CLOCK_MONOTONIC ns, ``wall_ns`` is the Unix epoch at ``began``."""

    began: int
    stopped: int
    wall_ns: int
    waits: list[tuple[WaitKey, WaitSum]]
    threads: list[ThreadRecord]
    stacks: dict[int, tuple[int, ...]]
    counters: dict[str, int]
    lost_sideband: int
    epochs: Epochs
    spaces: ProcessSpaces
    notes: list[str] = field(default_factory=list)
    exit_status: int | None = None
    """Of the launched command."""
    ends: dict[int, int] = field(default_factory=dict)
    """Why stacks are not complete: by id, an index into `records.ENDS`."""
    tables: Counts | None = None
    """What the loader of unwind tables did."""
    reused: int = 0
    """How often a thread id came back for another thread: their names and times are not told apart."""


class Epochs:
    """Which address space (epoch of `ProcessSpaces`) a wait's ``execs`` means.

    The probes count execs from when they first see a thread, the sideband from when it first sees the process; the
    times of the execs bring both together.
    """

    def __init__(self) -> None:
        self._seen: dict[int, list[int]] = {}
        self._counted: dict[tuple[int, int], int] = {}

    def seen(self, pid: int, when: int) -> None:
        """The sideband reported an exec."""
        self._seen.setdefault(pid, []).append(when)

    def forked(self, pid: int) -> None:
        """A process began; what was seen of another one that had this pid before does not count for it."""
        self._seen.pop(pid, None)

    def counted(self, record: ExecRecord) -> None:
        """The probes reported an exec: a moment after the sideband's."""
        self._counted[record.tgid, record.execs] = record.time

    def epoch(self, pid: int, execs: int) -> int:
        """The epoch; -1, which no process has, when the exec's record was lost."""
        if not execs:
            return 0
        when = self._counted.get((pid, execs))
        return -1 if when is None else bisect.bisect(self._seen.get(pid, []), when)


class Session:
    """Runs an engine until the duration is over, the targets are gone, the command ended, or someone asks."""

    def __init__(self, engine: Engine, launch: Launch | None, duration: float | None) -> None:
        """Takes over an engine made with `on_record` of `RecordSink`."""
        self._engine = engine
        self._scope: Scope = engine.options.scope
        self._launch = launch
        self._duration = duration
        self._spaces = ProcessSpaces()
        self._epochs = Epochs()
        self._to_adopt: deque[int] = deque()
        self._notes: list[str] = []
        self._next_look = 0.0
        self._sideband: Sideband | None = None
        try:
            self._sideband = Sideband()
        except OSError as error:
            self._notes.append(f"no perf events ({error.strerror}): programs that ended early may lack names")

        self._unwinding: Unwinding | None = None
        options = engine.options
        if options.user_stacks and options.unwind_bytes:
            self._unwinding = Unwinding(engine, self._spaces, options.unwind_bytes)

    def _prime(self, unwinding: Unwinding) -> None:
        """Tables for the processes that the trace begins with; the rest of many comes later."""
        targets = self._scope.tgids | {tgid for tid in self._scope.tids if (tgid := procfs.tgid_of(tid))}
        self._to_adopt.extend(sorted(targets))
        self._adopt_some()
        unwinding.prime(sorted(targets & self._spaces.processes.keys()))
        if self._launch:
            self._spaces.adopt(self._launch.pid)
            unwinding.prime_command(self._launch.pid)

    def run(
        self,
        sink: RecordSink,
        on_poll: Callable[[int, int, int], None] | None = None,
        interrupts: Interrupts | None = None,
    ) -> Capture:
        """Traces. ``on_poll`` gets (threads, stacks, lost intervals) a few times a second."""
        wall = time.time_ns()
        with contextlib.ExitStack() as stack:
            interrupts = interrupts or stack.enter_context(Interrupts())
            if self._unwinding:
                stack.callback(self._unwinding.close)
                self._prime(self._unwinding)
            seeds = self._engine.begin()
            if self._scope.ends_with and not seeds:
                raise StallscopeError("none of these threads can be traced", "they ended, or the kernel hides them")
            self._take_in(seeds)
            if self._launch:
                if self._launch.pid not in self._spaces.processes:
                    self._spaces.adopt(self._launch.pid)
                self._engine.expect_exec(self._launch.pid)
                self._launch.go()
            deadline = time.monotonic() + self._duration if self._duration is not None else None
            ends = _Ends(self._scope, self._launch)
            while not interrupts.requested and not ends.reached():
                now = time.monotonic()
                if deadline is not None and now >= deadline:
                    break
                timeout = _POLL if deadline is None else min(_POLL, deadline - now)
                if not self._to_adopt:
                    ends.wait(interrupts.wakeup, min(timeout, _QUIET))
                    ends.wait(interrupts.wakeup, max(timeout - _QUIET, 0), self._news())
                self._poll(sink)
                if on_poll:
                    counters = self._engine.counters()
                    on_poll(counters["new_threads"], len(sink.stacks), counters["lost_waits"])
            ends.close()
            records = self._engine.stop()
        return self._finish(sink, records, wall)

    def _news(self) -> list[int]:
        """Descriptors that tell of new programs and new tables at once, for the first stacks to be complete."""
        if not self._unwinding:
            return []
        return [self._unwinding.fd, *(self._sideband.fds if self._sideband else ())]

    def _poll(self, sink: RecordSink) -> None:
        self._engine.consume()
        self._follow(self._sideband.poll() if self._sideband else ())
        self._without_sideband(sink)
        if self._unwinding:
            self._unwinding.poll()
        if self._scope.grows and time.monotonic() >= self._next_look:
            self._look_for_newcomers()
        self._adopt_some()

    def _look_for_newcomers(self) -> None:
        begin = time.monotonic()
        self._scope.tgids &= set(procfs.pids())
        if newcomers := self._scope.newcomers():
            self._scope.tgids |= newcomers
            self._take_in(self._engine.seed())
        end = time.monotonic()
        self._next_look = end + (end - begin) / _LOOK_SHARE

    def _take_in(self, threads: list[tuple[int, int]]) -> None:
        known = self._spaces.processes
        self._to_adopt.extend(sorted({tgid for _, tgid in threads if tgid not in known}))
        if len(self._to_adopt) <= 64:
            self._adopt_some()

    def _adopt_some(self) -> None:
        until = time.monotonic() + _ADOPT_SLICE
        while self._to_adopt and time.monotonic() < until:
            self._spaces.adopt(self._to_adopt.popleft())

    def _follow(self, events: Iterable[Event]) -> None:
        every = self._scope.everything
        for event in events:
            if isinstance(event, Fork):
                self._forked(event)
            elif every or event.pid in self._spaces.processes:
                self._changed(event)

    def _forked(self, event: Fork) -> None:
        spaces = self._spaces
        if event.pid == os.getpid() or not (self._scope.everything or event.parent in spaces.processes):
            return
        if event.parent in self._to_adopt:
            self._to_adopt.remove(event.parent)
            spaces.adopt(event.parent)
        spaces.fork(event.parent, event.pid, event.time)
        self._epochs.forked(event.pid)

    def _changed(self, event: Exec | Mmap | Exit) -> None:
        spaces, unwinding = self._spaces, self._unwinding
        if isinstance(event, Exec):
            spaces.exec(event.pid, event.time)
            spaces.processes[event.pid].comm = os.fsdecode(event.comm)
            self._epochs.seen(event.pid, event.time)
            if unwinding:
                unwinding.began(event.pid)
        elif isinstance(event, Mmap):
            mapping = _mapping(event)
            spaces.mmap(event.pid, mapping, event.time)
            if unwinding:
                unwinding.mapped(event.pid, mapping, event.time)
        else:
            spaces.exit(event.pid)
            if unwinding:
                unwinding.exited(event.pid)

    def _without_sideband(self, sink: RecordSink) -> None:
        """Where there are no perf events: the probes' own exec records, and /proc while it lasts."""
        for record in sink.take_execs():
            self._epochs.counted(record)
            if self._sideband is None:
                self._epochs.seen(record.tgid, record.time)
                self._spaces.exec(record.tgid, record.time)
                self._spaces.adopt(record.tgid)

    def _finish(self, sink: RecordSink, records: list[ThreadRecord], wall: int) -> Capture:
        engine = self._engine
        self._follow(self._sideband.poll(final=True) if self._sideband else ())
        self._without_sideband(sink)
        while self._to_adopt:
            self._spaces.adopt(self._to_adopt.popleft())
        waits = [parse_wait(key, value) for key, value in engine.object.find_map("waits").items()]
        for pid in {key.tgid for key, _ in waits} | {record.thread.key.tgid for record in records}:
            if pid in self._spaces.processes:
                self._spaces.refresh(pid)
            else:
                self._spaces.adopt(pid)
        capture = Capture(
            engine.began,
            engine.stopped,
            wall,
            waits,
            sink.threads(records),
            sink.stacks,
            engine.counters(),
            self._sideband.lost if self._sideband else 0,
            self._epochs,
            self._spaces,
            self._notes,
            self._launch.poll() if self._launch else None,
            sink.ends,
            self._unwinding.counts if self._unwinding else None,
            sink.reused,
        )
        if self._sideband:
            self._sideband.close()
        return capture


class _Ends:
    """Notices the end of the traced processes without polling them, where the kernel has pidfds."""

    def __init__(self, scope: Scope, launch: Launch | None) -> None:
        self._launch = launch
        self._targets = [] if launch else list(scope.ends_with)
        self._bounded = bool(self._targets)
        self._fds: dict[int, int] = {}
        for pid in [launch.pid] if launch else self._targets:
            try:
                self._fds[pid] = os.pidfd_open(pid)
            except OSError:
                continue  # a thread, or gone: reached() looks at /proc

    def wait(self, wakeup: int, timeout: float, also: Iterable[int] = ()) -> None:
        """Returns after ``timeout`` seconds, or earlier when something happened."""
        _poll_any([wakeup, *self._fds.values(), *also], timeout)

    def reached(self) -> bool:
        if self._launch:
            return self._launch.poll() is not None
        if not self._bounded:
            return False
        gone = [pid for pid in self._targets if self._is_gone(pid)]
        for pid in gone:
            self._targets.remove(pid)
            if pid in self._fds:
                os.close(self._fds.pop(pid))
        return not self._targets

    def _is_gone(self, pid: int) -> bool:
        if pid in self._fds:
            return _poll_any([self._fds[pid]], 0)
        return not os.path.exists(f"/proc/{pid}")

    def close(self) -> None:
        for fd in self._fds.values():
            os.close(fd)


def _poll_any(fds: list[int], timeout: float) -> bool:
    """Whether one of ``fds`` becomes readable within ``timeout`` seconds. Unlike select(), for any number of a file."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return bool(poll.poll(max(timeout, 0) * 1000))


def _mapping(event: Mmap) -> Mapping:
    return Mapping(
        event.start,
        event.start + event.length,
        event.offset,
        os.fsdecode(event.path),
        event.dev,
        event.inode,
        event.build_id,
    )
