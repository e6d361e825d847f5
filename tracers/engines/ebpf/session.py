"""One trace from its first probe to its last record, and the reasons to stop."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from ....converters.model.remarks import Comment
from ...base.conditions import Conditions
from ...base.file_locks import FileLocks
from ...base.interrupts import Interrupts
from ...base.launch import Launch
from ...base.priority import urgent
from ...base.progress import Progress
from ...base.scope import Scope
from ...kernel.process_events import Event, ProcessEvents
from ...kernel.records import LOST, RecordSink, ThreadRecord, since_boundary
from ...measures.offcpu import FOREVER
from ...measures.protocol import columns_of
from ...outside.client import CLIENT
from ...symbols.process import NO_PID, ProcessSpaces
from ..ends import Ends
from . import refused_locks, retransmissions
from .bounds import Bounds, await_last_switches
from .capture import Capture, Part, by_demand, stacks_of
from .costing import Costing
from .creations import creation_rows, distinct
from .folding import Folding
from .following import Following
from .interpreters import Interpreters
from .lives import Lives
from .lock_rows import lock_rows
from .measures.protocol import Collector, Ended, rows_of
from .measures.recorded_spans import recorded_by
from .measures.registry import has_waits
from .newcomers import Newcomers
from .preparing import Preparation, check_start, expect_files
from .probes import Probes
from .sliced import slices_by_process
from .unwinding import Unwinding
from .waited_for import WaitedFor

if TYPE_CHECKING:
    from .intervals import Intervals

_POLL = 0.1
"""Seconds between two looks at the rings."""
_QUIET = 0.004
"""Seconds after a look at the rings in which events do not wake us, so that many do not keep us busy."""
_MEANWHILE = 0.05
"""Maximum seconds spent on following processes between two looks at the rings and tables."""


class Session:
    """Runs an engine until the duration is over, the targets are gone, the command ended, or a signal."""

    def __init__(self, engine: Probes, launch: Launch | None, duration: float | None, *, budget: float = 0.0) -> None:
        """Takes over an engine made with `on_record` of `RecordSink`."""
        self._engine = engine
        self._scope: Scope = engine.options.scope
        self._launch = launch
        self._duration = duration
        self._spaces = ProcessSpaces()
        self._conditions = Conditions()
        self._file_locks = FileLocks(
            self._spaces.processes,
            looks=has_waits(engine.options.collectors),
            refused=lambda: refused_locks.taken(engine.object.find_map("refused_locks")),
        )
        # Most measures do not use mappings, and a host has many.
        for collector in engine.options.collectors:
            if type(collector).mapped is not Collector.mapped:
                self._spaces.listeners.append(collector.mapped)
        self._to_adopt: deque[int] = deque()
        self._following = Following(self._scope, self._spaces, self._conditions, self._to_adopt)
        self._notes: list[Comment] = []
        self._costing = Costing(engine, budget, self._own_processes)
        self._bounds: Bounds | None = None
        """Once the trace begins."""
        self._folding: Folding | None = None
        self.intervals: Intervals | None = None
        self._process_events: ProcessEvents | None = None
        try:
            self._process_events = ProcessEvents()
        except OSError as error:
            self._notes.append(f"no perf events ({error.strerror}): programs that ended early may lack names")
        self._unwinding: Unwinding | None = None
        options = engine.options
        if options.user_stacks and options.unwind_bytes:
            self._unwinding = Unwinding(engine, self._spaces, options.unwind_bytes)
        self._interpreters = Interpreters(engine, self._spaces, self._unwinding)
        self._objects = WaitedFor(lambda: retransmissions.taken(engine.object.find_map("retransmissions")))
        self._newcomers = Newcomers(
            engine, self._following, self._objects, self._own_processes, self._file_locks.waited
        )

    def cut_into(self, intervals: Intervals, publish: Callable[[Capture], None]) -> None:
        """Cuts the trace: at the end of each interval, `run` calls ``publish`` with it, in a process of its own; what
        it returns is then the rest."""
        self.intervals, self._publish = intervals, publish

    def _prepare(self, unwinding: Unwinding, interrupts: Interrupts, progress: Progress | None, wait: bool) -> None:
        """Prepares tables for the first processes before the trace begins."""
        preparation = Preparation(unwinding, self._spaces, self._scope, self._follow_processes, wait=wait)
        preparation.modules = [name for collector in self._engine.options.collectors for name in collector.modules]
        if self._launch and not interrupts.requested:
            self._following.adopt(self._launch.pid)
        preparation.run(self._launch, interrupts, progress)

    def run(
        self,
        sink: RecordSink,
        on_poll: Callable[[int, int, int], None] | None = None,
        interrupts: Interrupts | None = None,
        progress: Progress | None = None,
        *,
        wait: bool = True,
    ) -> Capture:
        """Traces. ``on_poll`` gets (threads, stacks, lost intervals) a few times a second. If ``wait``, it first waits
        for unwind tables; ``progress`` shows how far they are."""
        with contextlib.ExitStack() as stack:
            interrupts = interrupts or stack.enter_context(Interrupts())
            ends = Ends(self._scope, self._launch)
            stack.callback(ends.close)
            if self._unwinding:
                stack.callback(self._unwinding.close)
                self._prepare(self._unwinding, interrupts, progress, wait)
            self._interpreters.begin(sink)
            sink.on_object = self._objects.add
            bounds = self._bounds = Bounds(self._engine, sink, self._interpreters)
            self._folding = Folding(self._engine.options.collectors, sink, self._spaces, self._conditions)
            stack.enter_context(urgent())
            if self.intervals:
                stack.callback(self.intervals.close)
            check_start(self._launch, interrupts)
            part = self._begin(ends, bounds)
            self._folding.began = part.began
            bounds.made_in = self._folding.made_in
            if progress:
                progress.restart()
            if self._launch and not interrupts.requested:
                self._release(self._launch)
                self._poll(sink)
            deadline = time.monotonic() + self._duration if self._duration is not None else None
            hasty = [(each.period, each.consume) for each in self._engine.options.collectors if each.period]
            while not interrupts.requested and not ends.reached():
                now = time.monotonic()
                if deadline is not None and now >= deadline:
                    break
                timeout = _POLL if deadline is None else min(_POLL, deadline - now)
                if not self._to_adopt:
                    ends.rest(interrupts.wakeup, min(timeout, _QUIET), hasty)
                    ends.rest(interrupts.wakeup, max(timeout - _QUIET, 0), hasty, self._news())
                self._poll(sink)
                part = self._keep_within(bounds, sink, part, on_poll)
            self._file_locks.finish()
            self._costing.finish()
            if not interrupts.requested and ends.reached():
                await_last_switches(self._engine, sink)
            if self.intervals and (at := self.intervals.withdraw()):
                part = self._cut(sink, bounds, self.intervals, part, at)
            records = sink.take_rest(part.began, self._engine.stop())
            bounds.finish(len(sink.ended) + len(records))
        return self._finish(sink, records, part, progress)

    def _keep_within(
        self, bounds: Bounds, sink: RecordSink, part: Part, on_poll: Callable[[int, int, int], None] | None
    ) -> Part:
        """Keeps the tables and the memory within their bounds; returns the interval that goes on."""
        counters = self._engine.counters()
        bounds.poll(counters)
        if self.intervals and (at := self.intervals.due()):
            part = self._cut(sink, bounds, self.intervals, part, at)
        if self._folding:
            # What is not known yet of a process would be lost with its account.
            known = self._process_events.until if self._process_events else FOREVER
            announced = self.intervals.announced if self.intervals else 0
            self._folding.poll(bounds.drain, self._own_processes(), min(known, announced or FOREVER))
        if on_poll:
            lost = sum(collector.lost_so_far(counters) for collector in self._engine.options.collectors)
            on_poll(counters["new_threads"], len(sink.stacks), lost)
        return part

    def _finish(self, sink: RecordSink, records: list[ThreadRecord], part: Part, progress: Progress | None) -> Capture:
        if progress:
            progress.ended(stacks=len(sink.stacks))
        self._following.follow(self._process_events.poll(final=True) if self._process_events else (), self._unwinding)
        self._catch_up(sink)
        self._interpreters.finish()
        self._objects.finish()
        boundary = self.intervals.boundary if self.intervals else 0
        if self._folding:  # every row has been taken in
            self._folding.poll(lambda: None, self._own_processes(), FOREVER)
        threads = [since_boundary(record, boundary, part.began) for record in sink.threads(records)]
        if self.intervals:
            self.intervals.note(threads)
        # A program that ran when the others were stopped may have counted a switch that came a little later.
        end = max(self._engine.stopped, *(record.end for record in threads), 0)
        self._costing.cut(end)
        capture = self._capture(sink, threads, part, end)
        if self._process_events:
            self._process_events.close()
        return capture

    def _cut(self, sink: RecordSink, bounds: Bounds, intervals: Intervals, part: Part, at: int) -> Part:
        """Ends the interval at a boundary that has passed; returns the next one."""
        engine, collectors = self._engine, self._engine.options.collectors
        for collector in collectors:
            # Waits for programs that began before the boundary.
            bounds.patiently(functools.partial(collector.read, engine.object))
        without_event = engine.without_event(at)
        self._costing.cut(at)
        engine.consume()
        self._follow_processes()
        self._catch_up(sink)
        records = sink.take_interval(part.began, at, without_event)
        threads = [since_boundary(record, intervals.boundary, part.began) for record in records]
        intervals.passed(threads)
        for collector in collectors:
            collector.ends(at)
        self._objects.cut()

        def write() -> None:
            bounds.finish_beside(len(threads), intervals.taken)
            self._publish(self._capture(sink, threads, part, at))

        intervals.write(write, bounds.size_beside(len(threads), intervals.taken))
        sink.execs = [record for record in sink.execs if record.time >= at]
        for collector in collectors:
            collector.next()
        if self._folding:
            self._folding.reset()
        self._file_locks.next()
        self._newcomers.cut(at)
        self._following.forget(threads)
        lost = self._process_events.lost if self._process_events else 0
        return Part(at, part.wall + at - part.began, engine.counters(), lost)

    def _begin(self, ends: Ends, bounds: Bounds) -> Part:
        if self._launch:
            expect_files(self._launch.command, os.environ, self._engine.options.collectors)
        bounded = bool(self._scope.ends_with)
        gone = ends.gone()
        self._scope.tgids -= gone
        self._scope.tids -= gone
        seeds: list[tuple[int, int]] = []
        wall, counters = time.time_ns(), self._engine.counters()
        # The stacks of all threads come, while others begin and end.
        bounds.patiently(lambda: seeds.extend(self._engine.begin()))
        if self._unwinding:
            self._unwinding.begin()
        if bounded and not seeds:
            raise self._scope.untraceable()
        self._newcomers.take_in(seeds)
        self._costing.begin()
        return Part(self._engine.began, wall, counters)

    def _release(self, launch: Launch) -> None:
        if launch.pid not in self._spaces.processes:
            self._following.adopt(launch.pid)
        self._engine.expect_exec(launch.pid)
        launch.go()

    def _news(self) -> list[int]:
        """Descriptors that report new programs and tables at once, so that first stacks are complete."""
        if not self._unwinding:
            return []
        return [self._unwinding.fd, *(self._process_events.fds if self._process_events else ())]

    def _poll(self, sink: RecordSink) -> None:
        self._engine.consume()
        self._follow_processes()
        self._follow_without_events(sink)
        if self._unwinding:
            self._unwinding.poll()
        self._interpreters.poll()
        self._objects.poll()
        self._newcomers.poll(lambda: self._unwinding.loader.pids if self._unwinding else ())
        self._conditions.poll()
        self._file_locks.poll()
        self._costing.poll()

    def _follow_processes(self) -> None:
        events = self._process_events.poll() if self._process_events else ()
        self._following.follow(self._meanwhile(events), self._unwinding)

    def _meanwhile(self, events: Iterable[Event]) -> Iterator[Event]:
        """The events. While they are taken in, the rings are read and the tables drained: files of processes that begin
        or end are slow to read, and there may be thousands."""
        due = time.monotonic() + _MEANWHILE
        for event in events:
            if time.monotonic() >= due:
                self._engine.consume()
                if self._bounds:
                    self._bounds.poll(self._engine.counters())
                due = time.monotonic() + _MEANWHILE
            yield event

    def _follow_without_events(self, sink: RecordSink) -> None:
        """Follows processes without perf events: uses the probes' exec records, and /proc while a process exists."""
        for record in sink.take_execs():
            if self._process_events is None:
                self._spaces.exec(record.tgid, record.time)
                self._following.adopt(record.tgid)

    def _catch_up(self, sink: RecordSink) -> None:
        """Takes in what is known of processes by now."""
        self._follow_without_events(sink)
        while self._to_adopt:
            self._following.adopt(self._to_adopt.popleft())

    def _own_processes(self) -> set[int]:
        """Processes that are not part of what is traced."""
        found = CLIENT.pids | self._scope.ours | (self._unwinding.loader.pids if self._unwinding else set())
        return found | (self.intervals.ours | self.intervals.beside if self.intervals else set())

    def _capture(self, sink: RecordSink, threads: list[ThreadRecord], part: Part, end: int) -> Capture:
        """Capture of these threads from the beginning of ``part`` to ``end``, after the measures were read."""
        engine, collectors = self._engine, self._engine.options.collectors
        ours = self._own_processes()
        threads = [record for record in threads if record.thread.key.tgid not in ours]
        if self._folding:
            threads += self._folding.records()
        folded = self._folding.lives() if self._folding else ()
        lives = Lives(threads, [*sink.execs, *folded], self._spaces)
        threads = lives.records(threads)
        ended = Ended(part.began, end, threads, lives.threads, self._spaces.pids, lives.alike)
        rows = lives.rows(row for row in rows_of(collectors, ended) if row.origin.tgid not in ours)
        recorded = recorded_by(collectors, ended)
        locks = lock_rows(collectors, ended, lives, ours)
        creations = creation_rows(threads, lives, self._folding.row_lives() if self._folding else {})
        more = [*(recorded.places if recorded else ()), *(locks.rows() if locks else ()), *distinct(creations)]
        stacks, ends = sink.stacks.take(stacks_of([*rows, *more]))
        stacks |= locks.stacks if locks else {}
        remaining = {record.thread.key.tgid for record in threads if not record.exited}
        for pid in {row.origin.tgid for row in rows if row.origin.ustack != LOST} | remaining:
            if pid in self._spaces.processes:
                self._spaces.refresh(pid)
            elif pid < NO_PID:
                self._spaces.adopt(pid)
        traced = {record.thread.key.tgid for record in threads}
        remarks = [
            *self._newcomers.remarks(part.began),
            *self._scope.remarks(traced),
            *self._file_locks.remarks(),
            *(self.intervals.remarks() if self.intervals else ()),
        ]
        return Capture(
            part.began,
            end,
            part.wall,
            columns_of(collectors),
            rows,
            {kind: count for each in collectors for kind, count in each.losses().items()} | self._file_locks.losses(),
            threads,
            stacks,
            {name: count - part.counters[name] for name, count in engine.counters().items()},
            (self._process_events.lost if self._process_events else 0) - part.lost_process_events,
            lives,
            self._spaces,
            [
                *self._notes,
                *self._costing.told,
                *remarks,
                *(remark for collector in collectors for remark in collector.remarks()),
            ],
            self._launch.poll() if self._launch else None,
            ends,
            self._unwinding.counts if self._unwinding else None,
            recorded,
            lives.timed(call for each in collectors for call in each.calls(ended) if call.origin.tgid not in ours),
            frozenset().union(*(collector.functions() for collector in collectors)),
            [call for collector in collectors for call in collector.shared()],
            self._conditions.finish(by_demand(threads)),
            lives.made(part for each in collectors for part in each.call_ioctls(ended) if part[0].tgid not in ours),
            lives.made(part for each in collectors for part in each.copies() if part[0].tgid not in ours),
            locks,
            self._interpreters.found(),
            [answer for collector in collectors for answer in collector.answers()],
            objects=self._objects.found(rows),
            launched=self._launch.pid if self._launch else 0,
            file_locks=self._file_locks.found(traced, part.began, end),
            pressure=self._conditions.pressure(),
            group_limits=self._conditions.group_limits.found(),
            slices=slices_by_process(collectors, ended, lives),
            collectives=next(filter(None, (each.collectives(ended) for each in collectors)), None),
            creations=creations,
            ours=frozenset((os.getpid(), *ours)),
        )
