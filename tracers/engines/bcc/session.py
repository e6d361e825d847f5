"""One trace, from the first thread that is taken in to the last table that is read."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from ....converters.base.collection import no_collection
from ....converters.base.units import duration, plural
from ....converters.model.losses import cut, time_of
from ...base import procfs
from ...base.conditions import Conditions
from ...base.interrupts import Interrupts
from ...base.launch import Launch
from ...base.priority import urgent
from ...base.progress import Progress
from ...kernel.libbpf import BpfError
from ...kernel.process_events import ProcessEvents
from ...measures.offcpu import OffCpu
from ...measures.oncpu import OnCpu
from ...measures.protocol import find
from ..asleep import Asleep
from ..ebpf.following import Following
from ..ends import Ends
from ..named_rows import NO_STACK, NamedRows, Place, without_python
from ..protocol import Request
from .gathered import Filter, Gathered
from .layouts import Counter, KernelAccount, state_index
from .naming import Named, named, process_names, with_sleepers
from .tables import Tables

_POLL = 0.1
_LOOK = 1.0
"""Seconds between two searches for new processes of the scope."""
_LAST_SWITCH = 0.05
"""Seconds for the last threads to be switched out, after the traced processes have ended."""


@dataclass
class _Times:
    began: int = 0
    wall: int = 0
    ended: int = 0


class Session:
    """Runs until the duration is over, the targets are gone, the command ended, or a signal."""

    def __init__(
        self, request: Request, tables: Tables, letters: dict[int, str], launch: Launch | None, asleep: Asleep
    ) -> None:
        """The programs are attached already. ``letters``: of states, by bit of prev_state. ``asleep``: the stacks of
        threads that sleep when the trace begins."""
        self._request, self._tables, self._launch = request, tables, launch
        self._scope = request.scope
        self.spaces = asleep.spaces
        self._to_adopt: deque[int] = deque()
        self._following = Following(self._scope, self.spaces, Conditions(), self._to_adopt)
        waits = find(request.measures, OffCpu)
        wanted = Filter(waits.shortest, waits.longest, waits.states) if waits else Filter()
        self._gathered = Gathered(letters, wanted)
        self._letters = letters
        self._names: dict[int, str] = {}
        self._asleep = asleep
        self._found: dict[int, tuple[int, str, int]] = {}
        """Threads that were there already: process, state of proc(5), and when it was seen, CLOCK_MONOTONIC ns."""
        self._seeded = 0
        self._refused = 0
        """Number of threads without room."""
        self._times = _Times()
        self._notes: list[str] = []
        self._events: ProcessEvents | None = None
        try:
            self._events = ProcessEvents()
        except OSError as error:
            self._notes.append(f"no perf events ({error.strerror}): programs that ended early may lack names")

    def run(self, interrupts: Interrupts) -> NamedRows:
        """Traces. StallscopeError when there is nothing to trace."""
        ends = Ends(self._scope, self._launch)
        try:
            with Progress(self._request.duration) as progress, urgent():
                self._begin(interrupts, ends)
                self._follow(interrupts, ends, progress)
                if not interrupts.requested and ends.reached():
                    time.sleep(_LAST_SWITCH)
                self._end()
        finally:
            ends.close()
            self._catch_up(final=True)
            if self._events:
                self._events.close()
        return self._taken()

    def _begin(self, interrupts: Interrupts, ends: Ends) -> None:
        bounded = bool(self._scope.ends_with)
        gone = ends.gone()
        self._scope.tgids -= gone
        self._scope.tids -= gone
        self._times.began, self._times.wall = time.monotonic_ns(), time.time_ns()
        expected = self._launch.pid if self._launch else 0
        self._tables.control(runs=True, expected=expected)
        if self._launch:
            self._following.adopt(self._launch.pid)
            if not interrupts.requested:
                self._launch.go()
            return
        self._take_in()
        for tid, (pid, letter, _) in self._found.items():
            if letter != "R":
                self._asleep.look(pid, tid)
        if bounded and not self._seeded:
            raise self._scope.untraceable()

    def _take_in(self) -> None:
        """Adds the threads of the scope that are not known yet."""
        scope = self._scope
        pids = set(procfs.pids()) if scope.everything else set(scope.tgids)
        for pid in sorted(pids - {os.getpid()} - scope.ours):
            for tid in procfs.tids(pid):
                self._seed(pid, tid)
        for tid in sorted(scope.tids):
            process = procfs.tgid_of(tid)
            if process is not None and process not in pids:
                self._seed(process, tid)

    def _seed(self, pid: int, tid: int) -> None:
        letter = procfs.state(tid)
        if letter in ("", "Z", "X"):
            return
        now = time.monotonic_ns()
        account = KernelAccount.seed(pid, state_index(letter, self._letters), now)
        try:
            is_new = self._tables.seed(tid, account)
        except BpfError:
            self._refused += 1
            return
        if is_new:
            self._seeded += 1
            self._found[tid] = pid, letter, now
            if pid not in self.spaces.processes and pid not in self._to_adopt:
                self._to_adopt.append(pid)

    def _follow(self, interrupts: Interrupts, ends: Ends, progress: Progress) -> None:
        seconds = self._request.duration
        until = time.monotonic() + seconds if seconds is not None else None
        next_look = time.monotonic() + _LOOK
        while not interrupts.requested and not ends.reached():
            now = time.monotonic()
            if until is not None and now >= until:
                break
            ends.wait(interrupts.wakeup, _POLL if until is None else min(_POLL, until - now))
            self._catch_up()
            counters = self._tables.counters()
            if self._tables.is_filling(counters):
                self._gathered.take(self._tables.take(runs=True))
            if self._scope.grows and time.monotonic() >= next_look:
                self._scope.tgids |= self._scope.newcomers()
                self._take_in()
                next_look = time.monotonic() + _LOOK
            if self._scope.waits and self._scope.name is not None:
                progress.wait_for(self._scope.name.pattern)
            else:
                progress.update(
                    threads=self._seeded, stacks=counters[Counter.NEW_STACKS], lost=counters[Counter.LOST_WAITS]
                )

    def _catch_up(self, *, final: bool = False) -> None:
        """Catches up with what has become of processes."""
        if self._events:
            self._following.follow(self._events.poll(final=final), None)
        while self._to_adopt:
            self._following.adopt(self._to_adopt.popleft())

    @no_collection()
    def _end(self) -> None:
        self._times.ended = time.monotonic_ns()
        self._tables.control(runs=False)
        for _ in (0, 1):
            self._gathered.take(self._tables.take(runs=False))
        living = self._tables.threads()
        self._names = {tid: procfs.comm(account.tgid, tid) for tid, account in living.items()}
        self._gathered.finish(living, self._times.ended, procfs.state)

    @no_collection()
    def _taken(self) -> NamedRows:
        gathered, times = self._gathered, self._times
        waits = list(gathered.waits()) if find(self._request.measures, OffCpu) else []
        samples = find(self._request.measures, OnCpu)
        running = gathered.running(samples.frequency) if samples else {}
        for pid in {account.pid for account in gathered.accounts} - self.spaces.processes.keys():
            self.spaces.adopt(pid)
        absolute = self._request.kernel_addresses
        found = named(waits, running, gathered.stacks, self.spaces, kernel_addresses=absolute)
        seen = {tid: now for tid, (_, _, now) in self._found.items()}
        found.waits = with_sleepers(found.waits, self._asleep, seen, times.ended)
        rows: dict[str, dict[Place, list[int]]] = {OffCpu.name: found.waits, OnCpu.name: found.running}
        losses = self._losses(found)
        threads = gathered.names | {tid: name for tid, name in self._names.items() if name}
        processes = process_names({account.pid for account in gathered.accounts}, self.spaces)
        return NamedRows(
            times.wall, times.ended - times.began, rows, gathered.accounts, threads, processes, losses,
            [*self._notes, *self._scope.remarks(processes), *self._remarks(found, losses)],
        )  # fmt: skip

    def _losses(self, found: Named) -> dict[str, int]:
        counters, here = self._tables.counters(), self._gathered.lost
        lost = {
            "intervals": counters[Counter.LOST_WAITS] + here["intervals"],
            time_of("intervals"): counters[Counter.LOST_TIME] + here[time_of("intervals")],
            "samples": counters[Counter.LOST_SAMPLES] + here["samples"],
            "stacks": found.missing,
            "threads": counters[Counter.LOST_THREADS] + here["threads"] + self._refused,
            "address space records": self._events.lost if self._events else 0,
        }
        more = {"scheduler events that the kernel did not report": counters[Counter.UNSEEN], cut(): found.cut}
        return lost | {kind: number for kind, number in more.items() if number}

    def _remarks(self, found: Named, lost: dict[str, int]) -> Sequence[str]:
        said = [
            *found.problems,
            "user stacks were walked by frame pointers: of functions compiled without them, callers are missing",
        ]
        if found.has_python:
            said.append(without_python("bcc"))
        if any(place.stack[0].name == NO_STACK for place in found.waits):
            said.append(f"{NO_STACK}: waits that had begun before the trace")
        if lost["intervals"]:
            time_lost = duration(lost[time_of("intervals")])
            said.append(f"{plural(lost['intervals'], 'wait')} ({time_lost}) without room: raise --table-size")
        if unseen := lost.get("scheduler events that the kernel did not report"):
            time_unseen = duration(self._tables.counters()[Counter.UNSEEN_TIME])
            said.append(
                f"{plural(unseen, 'event')} of the scheduler not reported by the kernel: {time_unseen} in [lost]"
            )
        return said
