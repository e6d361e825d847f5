"""Cost of the probes while a trace runs: what they take of the time of the traced threads.

It is measured in windows, because to measure costs something: the kernel times the programs there, and what an event
takes beside its program is added by figures that were measured once. Between windows, the share of the last one holds.
"""

from __future__ import annotations

import os
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ....converters.model.remarks import TRACER
from ...kernel.bpfobject import Object
from ...kernel.run_times import Runs, RunTimes
from ...outside.starting import KERNEL_TICKS, USER_TICKS, stat_of

WINDOW, PAUSE = 0.1, 0.4
"""Seconds of a window, and between two."""
LEAST_WINDOWS = 3
"""Fewer windows do not tell what a trace costs: in one of them the traced threads may hardly have run."""
SAMPLES, CALLS, WAKERS, LOCKS, IOCTLS, FAULTS, WAITS, OTHERS = (
    "samples",
    "calls",
    "wakers",
    "locks",
    "ioctls",
    "page faults",
    "waits",
    "others",
)
"""Parts of the cost. `WAITS` is all that the scheduler's events take: accounts, waits and their stacks."""
_PARTS = {
    "oncpu": SAMPLES,
    "calls": CALLS,
    "wakeup": WAKERS,
    "locks": LOCKS,
    "ioctl": IOCTLS,
    "page": FAULTS,
    "sched": WAITS,
    "scope": WAITS,
}
"""Part of a program, by the beginning of its name."""
_OTHER_PARTS = {"scope_fork": WAKERS}
"""Part of a program, by its name: most of it is the stack in which a thread is created, which leaves with those in
which threads are woken."""
TRAP = 540
"""ns of a function's entry, and of its return, before a program runs: an instruction that the kernel emulates."""
STEP = 19_000
"""ns more if the kernel has to execute the instruction by itself. On a virtual machine: others need less."""
_ON_TOP = {SAMPLES: 1_000, CALLS: TRAP}
"""ns of an event beside its program: the timer's interrupt, the trap; else `_TRACEPOINT`."""
_TRACEPOINT = 40
_CORE = struct.Struct("<QQ")
"""struct core_time of bpf/include/maps.bpf.h."""
_NSEC = 1_000_000_000


class Clocks(NamedTuple):
    """Clocks in ns: of cores that ran traced threads, of the tracer's processes, of cores without work."""

    traced: int
    own: int
    idle: int


class Window(NamedTuple):
    """Measured in one window; times in ns."""

    traced: int
    """Time of traced threads on cores."""
    parts: Mapping[str, int]
    """Time that each part took of it."""
    length: int = 0
    """Length of the window."""

    @property
    def whole(self) -> int:
        """Time that the budget is a share of: that of traced threads on cores, of one core at least.

        The programs run at the events of all threads of the host. Beside them a thread that waits has next to no time
        on cores, and what was left out would not give it more."""
        return max(self.traced, self.length)

    @property
    def share(self) -> float:
        """Share of this time that the probes take; 0 if no traced thread ran."""
        return sum(self.parts.values()) / self.whole if self.traced else 0.0


def together(windows: Sequence[Window]) -> Window:
    """Windows as a single one."""
    parts = Counter[str]()
    for each in windows:
        parts.update(each.parts)
    return Window(sum(each.traced for each in windows), parts, sum(each.length for each in windows))


class Spent(NamedTuple):
    """Cost of a trace, or of an interval of one; times in ns."""

    parts: Mapping[str, float]
    """Cost by part, with `TRACER`."""
    traced: int
    """Time of traced threads on cores."""
    length: int
    """Time for which it was measured."""


class Meter:
    """Measures the cost of the programs of ``loaded``. `poll` is called several times a second."""

    def __init__(
        self,
        loaded: Object,
        helpers: Callable[[], Iterable[int]],
        stepped: Callable[[], int],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``helpers``: the tracer's other processes. ``stepped``: number of calls so far of functions at which the
        kernel steps."""
        self._loaded, self._stepped, self._now = loaded, stepped, now
        self._ours = Helpers(helpers)
        self._times = RunTimes(loaded.programs.values())
        self._next = 0.0
        self._began: tuple[Clocks, Mapping[str, Runs], int] | None = None
        """Counts when the window began that goes on."""
        self._since = 0.0
        """Second at which it began."""
        self._before: Clocks | None = None
        """Clocks at the end of the last window, or when the trace began."""
        self._seen: dict[str, int] = {}
        """Time of each part in all windows since something was left out."""
        self._seen_traced = 0
        """Time of traced threads on cores in these windows."""
        self._last = 0.0
        """Second of these clocks."""
        self._windows = 0
        """Number of windows in which traced threads ran."""
        self._shares: dict[str, float] = {}
        """Share of each part in these windows: a single one can be far off where traced threads hardly ran."""
        self.parts: dict[str, float] = {}
        """Cost so far, in ns."""
        self.traced = 0
        """Time of traced threads on cores up to now."""
        self.length = 0
        """Time for which it has measured, in ns."""
        self.problem = ""
        """Reason why the cost is not known; "" if it is."""

    def begin(self) -> None:
        """The trace begins."""
        self._before = self._clocks()
        self._next = self._last = self._now()

    def poll(self) -> Window | None:
        """Begins or ends a window if that is due; returns one that has ended."""
        if self.problem or self._before is None or self._now() < self._next:
            return None
        if self._began:
            return self._end(self._began)
        try:
            self._times.begin()
        except OSError as error:
            self.problem = f"the kernel does not time the probes ({error.strerror})"
            return None
        self._began = self._clocks(), self._times.read(), self._stepped()
        self._since = self._now()
        self._next = self._since + WINDOW
        return None

    @property
    def measured(self) -> bool:
        """Whether there were windows enough in which traced threads ran."""
        return self._windows >= LEAST_WINDOWS

    def forget(self) -> None:
        """Something was left out, or an interval begins: what windows showed before is not what the rest costs. It is
        taken for that until the next window has ended."""
        self._seen, self._seen_traced = {}, 0

    def hurry(self) -> None:
        """The next window begins now."""
        self._next = min(self._next, self._now())

    def cut(self) -> Spent:
        """An interval ends; returns its cost. A window that goes on counts in the next one."""
        if self._shares and self._before:
            self._add(self._clocks())
        spent = Spent(self.parts, self.traced, self.length)
        self.parts, self.traced, self.length = {}, 0, 0
        self.forget()
        return spent

    def finish(self) -> None:
        """The trace ends."""
        if self._began and self._now() >= self._next:
            self._end(self._began)
        self._times.end()
        if self._shares and self._before:
            self._add(self._clocks())
        self._before = None

    def _end(self, began: tuple[Clocks, Mapping[str, Runs], int]) -> Window:
        clocks, runs, stepped = began
        after = self._clocks()
        programs = {name: each.since(runs[name]) for name, each in self._times.read().items()}
        self._times.end()
        parts = parts_of(programs, max(self._stepped() - stepped, 0))
        traced = max(after.traced - clocks.traced, 0)
        if traced:
            self._windows += 1
            self._seen_traced += traced
            self._seen = {name: self._seen.get(name, 0) + parts.get(name, 0) for name in {**self._seen, **parts}}
            self._shares = {name: part / self._seen_traced for name, part in self._seen.items()}
        self._add(after)
        now = self._now()
        self._began, self._next = None, now + PAUSE
        return Window(traced, parts, round((now - self._since) * _NSEC))

    def _add(self, after: Clocks) -> None:
        """Adds what the time since the last window has cost."""
        assert self._before, "the trace began"
        traced, own = max(after.traced - self._before.traced, 0), beyond_idle(self._before, after)
        self._before = after
        now = self._now()
        self.length += round((now - self._last) * _NSEC)
        self._last = now
        self.traced += traced
        for name, share in self._shares.items():
            self.parts[name] = self.parts.get(name, 0.0) + share * traced
        self.parts[TRACER] = self.parts.get(TRACER, 0.0) + own

    def _clocks(self) -> Clocks:
        now = time.monotonic_ns()
        cores = (_CORE.unpack(value) for value in self._loaded.find_map("core_times").percpu(0))
        traced = sum(total + (max(now - since, 0) if since else 0) for since, total in cores)
        return Clocks(traced, time.process_time_ns() + self._ours.time(), _idle())


class Helpers:
    """The tracer's other processes."""

    def __init__(self, pids: Callable[[], Iterable[int]]) -> None:
        self._pids = pids
        self._times: dict[int, int] = {}
        """Times on cores of those that ran at the last look, in ns."""
        self._gone = 0
        """Times of those that have ended since, as they were last seen."""

    def time(self) -> int:
        """Time on cores in ns of all of them so far, those that have ended included: it never becomes less."""
        before, self._times = self._times, {pid: _cpu_of(pid) for pid in self._pids()}
        # An id can come back.
        self._gone += sum(ns for pid, ns in before.items() if self._times.get(pid, 0) < ns)
        return self._gone + sum(self._times.values())


def parts_of(programs: Mapping[str, Runs], stepped: int) -> dict[str, int]:
    """Time in ns that the runs of programs took, with what comes on top, by part."""
    parts: dict[str, int] = {}
    for name, runs in programs.items():
        part = _OTHER_PARTS.get(name) or _PARTS.get(name.partition("_")[0], OTHERS)
        if runs.number:
            parts[part] = parts.get(part, 0) + runs.ns + runs.number * _ON_TOP.get(part, _TRACEPOINT)
    if stepped:
        parts[CALLS] = parts.get(CALLS, 0) + stepped * STEP
    return parts


def beyond_idle(before: Clocks, after: Clocks) -> int:
    """The tracer's own time between two looks, as far as no core was idle: it takes that from others."""
    return max(after.own - before.own - max(after.idle - before.idle, 0), 0)


def _cpu_of(pid: int) -> int:
    """Time of another process of ours on cores; 0 if it is gone."""
    ticks = sum(int(stat_of(pid, field) or 0) for field in (USER_TICKS, KERNEL_TICKS))
    return ticks * _NSEC // os.sysconf("SC_CLK_TCK")


def _idle() -> int:
    """Time for which cores had nothing to do: fields 4 and 5 of the first line of /proc/stat (proc(5))."""
    with open("/proc/stat", "rb") as file:
        fields = file.readline().split()
    return sum(map(int, fields[4:6])) * _NSEC // os.sysconf("SC_CLK_TCK")
