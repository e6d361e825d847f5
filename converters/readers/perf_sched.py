"""Off-CPU time from the scheduler's events in the text of ``perf sched script`` or ``perf script``.

    perf sched record -g -- sleep 10 && perf sched script > out.txt

From sched_switch out to sched_switch in of the same thread, by the stack at the switch out. Until sched_wakeup (or
sched_waking, or the end of what sched_stat_sleep, _blocked or _iowait report) the thread was blocked, in the state that
the switch says; from there on, or if it was preempted, runnable: labels ``state`` and values as in the profiles of
trace-offcpu. Without a wakeup in the recording all of the time counts as blocked, and the number of such waits is told.
Recorded with -p, perf has no switches in: then sched_stat_* alone tell the time, as for stackcollapse-perf-sched.awk.
A wait that had not ended is left out and counted, and so is time that runs backwards, for the events of several cores
come out of order when perf lost some.
"""

from __future__ import annotations

from ..model import Frame, Labels, Profile, Sample, Stack, ValueType
from .options import ReadOptions
from .perf_lines import parse_frames, parse_header
from .sched_events import Event, parse
from .skipped import Skipped
from .source import Source

EXPECTED = "an event of perf sched script: comm tid [cpu] time: sched:sched_switch: …, then its stack"
WOKEN, PREEMPTED = "runnable-woken", "runnable-preempted"
"""As in tracers/core/assemble.py."""

_SNIFFED = 200
_MAX_CACHED = 64 << 20
_MAX_LINES = 1 << 18
_MAX_HEADERS = 1 << 16
_MAX_HEADER = 1 << 10
_SCHED = b"sched:"
_SCALES = [10 ** (9 - digits) for digits in range(10)]
"""ns per unit of the last digit, by the number of digits."""
_TRACING = ("bpf_", "__bpf_", "__traceiter_", "perf_trace_", "trace_event_raw_")
_SCHEDULE = "__schedule"
_SLEEPS = ("stat_sleep", "stat_blocked", "stat_iowait")
_BAD, _OTHER, _BACKWARDS = "lines not understood", "events that tell no wait", "waits that end before they begin"
_OPEN, _UNSEEN = "waits that did not end", "waits without a wakeup, counted as blocked"


def sniff(head: bytes) -> bool:
    """Whether there is a switch or a delay among the first lines, and no event but sched:*."""
    lines = [line for line in head.splitlines()[:_SNIFFED] if line[:1] not in (b"", b"#", b" ", b"\t")]
    events = [(parse(line), line) for line in lines[:-1] or lines]
    others = [line for event, line in events if event is None]
    if any((header := parse_header(line, loose=False)) and header.event for line in others):
        return False
    return any(event and event.name in ("switch", *_SLEEPS) for event, _ in events)


def read(source: Source, options: ReadOptions) -> Profile:
    """One sample per distinct stack, thread and state. Raises StallscopeError when there are lines, and no event."""
    reader = _Reader(source.name, options)
    for chunk in source.chunks(b"\n\n"):
        reader.add(chunk)
    profile = reader.profile()
    reader.skipped.check(source, reader.events > 0, EXPECTED)
    return profile


class _Wait:
    """A thread that is off the CPU."""

    __slots__ = ("begin", "blocked", "comm", "pid", "stack", "state", "woken")

    def __init__(self, event: Event, time: int, stack: Stack) -> None:
        self.begin, self.state, self.stack = time, event.state, stack
        self.pid, self.comm = event.pid, event.comm
        self.woken: int | None = None
        """When it became runnable."""
        self.blocked: int | None = None
        """What sched_stat_* say."""


class _Reader:
    """Pairs switches."""

    def __init__(self, name: str, options: ReadOptions) -> None:
        self.skipped = Skipped(name, EXPECTED)
        self.events = 0
        self._addrs = options.addrs
        self._headers: dict[tuple[bytes, int, bytes], Event] = {}
        self._waits: dict[int, _Wait] = {}
        self._cells: dict[tuple[Stack, Labels], list[int]] = {}
        self._labels: dict[tuple[int | None, int, str, str], Labels] = {}
        self._processes: dict[int, str] = {}
        self._stacks: dict[bytes, Stack] = {}
        self._frames: dict[bytes, tuple[Frame, ...] | None] = {}
        self._cached = 0
        self._line = 1
        self._unseen = 0

    def add(self, chunk: bytes) -> None:
        """Reads the events of ``chunk``, which begins where the last one ended."""
        for block in chunk.split(b"\n\n"):
            self._add_block(block)
            self._line += block.count(b"\n") + 2
        self._line -= 2 - (not chunk.endswith(b"\n\n"))

    def _add_block(self, block: bytes) -> None:
        """One event with its stack, or several without."""
        header, _, body = block.partition(b"\n")
        usual = not body or body in self._stacks
        usual = usual or (body[:1] == b"\t" and body.count(b"\n\t") == body.count(b"\n"))
        if usual and header[:1] != b"#" and (found := self._parse(header)):
            self.events += 1
            self._add_event(*found, body)
            return
        lines = block.split(b"\n")
        at = 0
        while at < len(lines):
            line = lines[at].rstrip(b"\r")
            end = at + 1
            if not line.strip() or line[:1] == b"#":
                at = end
                continue
            while end < len(lines) and lines[end][:1] in (b" ", b"\t"):
                end += 1
            event = parse(line)
            if event is None:
                self.skipped.add(_BAD, self._line + at)
            else:
                self.events += 1
                self._add_event(event, event.time, b"\n".join(lines[at + 1 : end]))
            at = end

    def _parse(self, header: bytes) -> tuple[Event, int] | None:
        """An event and its time. Headers that differ in nothing but the digits of the time are parsed once: what is
        before and behind it is the key, and has no other place where `parse` could find a time."""
        before, _, fields = header.partition(b": sched:")
        thread, _, text = before.rpartition(b" ")
        seconds, _, part = text.partition(b".")
        plain = (
            seconds.isdigit() and part.isdigit() and len(seconds) < 13 and len(part) < 10 and len(header) < _MAX_HEADER
        )
        if not plain or _SCHED in thread or _SCHED in fields:
            event = parse(header.rstrip(b"\r"))
            return (event, event.time) if event else None
        time = int(seconds) * 1_000_000_000 + int(part) * _SCALES[len(part)]
        key = thread, len(text) << 4 | len(part), fields
        known = self._headers.get(key)
        if known is None:
            known = parse(header.rstrip(b"\r"))
            if known is None:
                return None
            if len(self._headers) >= _MAX_HEADERS:
                self._headers.clear()
            self._headers[key] = known
        return known, time

    def _add_event(self, event: Event, time: int, text: bytes) -> None:
        if event.name == "switch":
            self._switch(event, time, text)
        elif event.name in ("wakeup", "waking"):
            wait = self._waits.get(event.tid)
            if wait is not None and wait.state and (wait.woken is None or event.name == "wakeup"):
                wait.woken = time
        elif event.name in _SLEEPS:
            self._slept(event, time)
        else:
            self.skipped.add(_OTHER)

    def _switch(self, event: Event, time: int, text: bytes) -> None:
        if event.pid is not None and event.pid == event.tid:
            self._processes[event.pid] = event.comm
        if event.tid and event.state != "ended":
            if event.tid in self._waits:
                self._unended(event.tid)
            self._waits[event.tid] = _Wait(event, time, self._stack(text))
        elif event.tid:
            self._waits.pop(event.tid, None)
        if event.next_tid and (wait := self._waits.get(event.next_tid)) is not None and event.next_tid != event.tid:
            del self._waits[event.next_tid]
            self._end(event.next_tid, wait, time)

    def _slept(self, event: Event, time: int) -> None:
        """A delay is told when the thread is woken: it began that long before."""
        wait = self._waits.get(event.tid)
        if wait is not None and wait.blocked is None and wait.state:
            wait.blocked, wait.woken = event.delay, time

    def _end(self, tid: int, wait: _Wait, time: int) -> None:
        if time < wait.begin or (wait.woken or wait.begin) < wait.begin:
            self.skipped.add(_BACKWARDS)
            return
        if not wait.state:
            self._count(tid, wait, PREEMPTED, time - wait.begin)
            return
        if wait.woken is None:
            self._unseen += 1
        woken = min(time, wait.woken if wait.woken is not None else time)
        self._count(tid, wait, wait.state, woken - wait.begin)
        if time > woken:
            self._count(tid, wait, WOKEN, time - woken)

    def _unended(self, tid: int) -> None:
        """The thread ran again, but when is not known; what it slept may be."""
        wait = self._waits.pop(tid)
        if wait.blocked is not None:
            self._count(tid, wait, wait.state, wait.blocked)
        else:
            self.skipped.add(_OPEN)

    def _count(self, tid: int, wait: _Wait, state: str, time: int) -> None:
        key = (wait.pid, tid, wait.comm, state)
        labels = self._labels.get(key)
        if labels is None:
            labels = self._labels[key] = self._make_labels(*key)
        cell = self._cells.setdefault((wait.stack, labels), [0, 0])
        cell[0] += time
        cell[1] += 1

    def _make_labels(self, pid: int | None, tid: int, comm: str, state: str) -> Labels:
        labels: dict[str, str | int] = {"state": state, "thread": comm, "tid": tid}
        process = self._processes.get(pid, "") if pid is not None else ""
        labels["process"] = process or comm
        if pid is not None:
            labels["pid"] = pid
        return tuple(sorted(labels.items()))

    def _stack(self, text: bytes) -> Stack:
        known = self._stacks.get(text)
        if known is None:
            if self._cached > _MAX_CACHED or len(self._frames) > _MAX_LINES:
                self._stacks.clear()
                self._frames.clear()
                self._cached = 0
            self._cached += len(text) + 100
            frames: list[Frame] = []
            for line in reversed(text.split(b"\n") if text else []):
                frames.extend(self._line_frames(line.rstrip(b"\r")))
            known = self._stacks[text] = _without_tracing(tuple(frames))
        return known

    def _line_frames(self, line: bytes) -> tuple[Frame, ...]:
        if line not in self._frames:
            self._frames[line] = parse_frames(line, addrs=self._addrs, java=False)
        frames = self._frames[line]
        if frames is None:
            self.skipped.add(_BAD)
        return frames or ()

    def profile(self) -> Profile:
        """What was counted."""
        for tid in list(self._waits):
            self._unended(tid)
        profile = Profile([ValueType("off-cpu", "nanoseconds"), ValueType("count", "count")], title="off-CPU time")
        for (stack, labels), (time, number) in self._cells.items():
            profile.samples.append(Sample(stack, (time, number), labels))
        self.skipped.tell(profile)
        if self._unseen:
            profile.lost[_UNSEEN] = self._unseen
        return profile


def _without_tracing(stack: Stack) -> Stack:
    """Without what the tracepoint itself called below __schedule."""
    for i in range(len(stack) - 1, -1, -1):
        if stack[i].name == _SCHEDULE and stack[i].kind == "kernel":
            return stack[: i + 1]
    return tuple(frame for frame in stack if frame.kind != "kernel" or not frame.name.startswith(_TRACING))
