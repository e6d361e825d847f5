"""Off-CPU time from the scheduler's events in the text of ``perf sched script`` or ``perf script``.

    perf sched record -g -- sleep 10 && perf sched script > out.txt

A wait lasts from a thread's sched_switch out to its sched_switch in, and has the stack of the switch out. Until
sched_wakeup (or sched_waking, or the end of the time that sched_stat_sleep, _blocked or _iowait report) the thread was
blocked, in the state given by the switch; after that, or if it was preempted, it was runnable: labels ``state`` and
values as in the profiles of trace-offcpu. Without a wakeup in the recording all of the time counts as blocked, and the
number of such waits is reported. A recording with -p has no switches in: then only sched_stat_* give the time, as
for stackcollapse-perf-sched.awk. Waits that did not end are left out and counted. So are waits of negative length: the
events of several cores are out of order if perf lost some.

A recording made without ``-g`` has no stacks: perf then prints one line per event, with names padded with leading
spaces, and the result is the time of each thread by state. A recording may mix events with and without stacks.
"""

from __future__ import annotations

from ...model import Frame, Labels, Profile, Sample, Stack, ValueType
from ...model.states import PREEMPTED, WOKEN
from ..base.options import ReadOptions
from ..base.skipped import Skipped
from ..base.source import Source
from .lines import parse_frames, parse_header
from .sched_events import Event, KnownParts, NotKnown, parse

EXPECTED = "an event of perf sched script: comm tid [cpu] time: sched:sched_switch: …, then its stack"

_SNIFFED = 200
_MAX_CACHED = 64 << 20
_MAX_LINES = 1 << 18
_TRACING = ("bpf_", "__bpf_", "__traceiter_", "perf_trace_", "trace_event_raw_")
_SCHEDULE = "__schedule"
_SWITCH = b"sched_switch: "
_WAKES = ("wakeup", "waking")
_SLEEPS = ("stat_sleep", "stat_blocked", "stat_iowait")
_BAD, _OTHER, _BACKWARDS = "lines not understood", "events without a wait", "waits of negative length"
_OPEN, _UNSEEN = "waits that did not end", "waits without a wakeup, counted as blocked"


def sniff(head: bytes) -> bool:
    """Whether the first lines include a switch or a delay, and no event other than sched:*."""
    lines = head.splitlines()[:_SNIFFED]
    if _is_flat(head):
        lines = [line.lstrip(b" ") for line in lines]
    lines = [line for line in lines if line[:1] not in (b"", b"#", b" ", b"\t")]
    events = [(parse(line), line) for line in lines[:-1] or lines]
    others = [line for event, line in events if event is None]
    if any((header := parse_header(line, loose=False)) and header.event for line in others):
        return False
    return any(event and event.name in ("switch", *_SLEEPS) for event, _ in events)


def read(source: Source, options: ReadOptions) -> Profile:
    """One sample per distinct stack, thread and state. Raises StallscopeError when there are lines, but no event."""
    reader = _Reader(source.name, options, b"\n" if _is_flat(source.head) else b"\n\n")
    for chunk in source.chunks(reader.separator):
        reader.add(chunk)
    profile = reader.profile()
    reader.skipped.check(source, reader.useful, EXPECTED)
    return profile


def _is_flat(head: bytes) -> bool:
    """Whether events are padded with spaces, as is usual without stacks, and no line belongs to a stack."""
    lines = [line for line in head.splitlines() if line.strip() and line[:1] != b"#"]
    return bool(lines) and _is_padded(lines[0]) and not any(line[:1] == b"\t" for line in lines)


def _is_padded(line: bytes) -> bool:
    return line[:1] == b" " and b" sched:" in line and parse(line.lstrip(b" ")) is not None


class _Cell:
    """Total of a thread's waits in one state at one stack."""

    __slots__ = ("after", "number", "time")

    def __init__(self) -> None:
        self.time = self.number = 0
        self.after: _Cell | None = None
        """The runnable time after these waits."""


class _Thread:
    """A thread, and its wait while it is off the CPU."""

    __slots__ = ("begin", "delay", "out", "stack", "state", "woken")

    def __init__(self) -> None:
        self.out: _Out | None = None
        """Wait into which the thread was switched out; None while it is not waiting."""
        self.state = ""
        """State of the wait, like `Event.state`."""
        self.begin = self.stack = 0
        self.woken: int | None = None
        """Time when it became runnable; None if it did not."""
        self.delay: int | None = None
        """The delay reported by sched_stat_*."""


class _Out:
    """One way of switching out a thread: its names and its state. ``cells`` are by the number of the stack."""

    __slots__ = ("cells", "comm", "is_main", "pid", "state", "thread", "tid", "waits")

    def __init__(self, event: Event, thread: _Thread, cells: dict[int, _Cell]) -> None:
        self.pid, self.tid, self.comm, self.state = event.pid, event.tid, event.comm, event.state
        self.thread, self.cells = thread, cells
        self.is_main = event.pid == event.tid
        self.waits = event.tid != 0 and event.state != "ended"
        """False for the idle threads and for a thread that ends."""


class _Reader:
    """Matches switches out and in."""

    def __init__(self, name: str, options: ReadOptions, separator: bytes = b"\n\n") -> None:
        self.skipped = Skipped(name, EXPECTED)
        self.separator = separator
        """Separates events."""
        self.useful = False
        """Whether any event was found."""
        self._known: KnownParts[_Out, _Thread] = KnownParts(self._out, self._thread)
        self._stacks = _Stacks(self.skipped, options)
        self._threads: dict[int, _Thread] = {}
        self._cells: dict[tuple[int | None, int, str, str], dict[int, _Cell]] = {}
        """Sums of waits by pid, tid, comm and state, and by stack."""
        self._counted: list[tuple[int, Labels, _Cell]] = []
        """All cells with their stacks and labels, in the order of the input."""
        self._labels: dict[tuple[int | None, int, str, str], Labels] = {}
        self._processes: dict[int, str] = {}
        self._line = 1
        self._unseen = 0

    def add(self, chunk: bytes) -> None:
        """Reads the events of ``chunk``, which continues where the last one ended. An event's header is not parsed if
        its parts are known."""
        blocks = chunk.split(self.separator)
        known, stacks, switch = self._known, self._stacks, self._switch
        heads, wakes, places, scale = known.heads, known.wakes, known.places, known.scale
        line, counted = self._line, 0
        for i, block in enumerate(blocks):
            header, _, body = block.partition(b"\n")
            before, _, fields = header.partition(b": sched:")
            part = before[-places:]
            try:
                outs, begin = heads[before[:-places]]
                if not part.isdigit():
                    raise NotKnown
                time = begin + int(part) * scale
                if fields.startswith(_SWITCH):
                    prev, _, after = fields.partition(b" ==> ")
                    out, nexts = outs[prev]
                    thread = nexts[after]
                    switch(out, thread, time, stacks[body] if out.waits else stacks.skipped(body))
                    continue
                if body:
                    stacks.skipped(body)
                if (woken := wakes.get(fields)) is not None:
                    thread, is_running = woken
                    if thread.state and (is_running or thread.woken is None):
                        thread.woken = time
                else:
                    self._add_other(fields, time)
            except NotKnown:
                if block:
                    line += sum([each.count(b"\n") + len(self.separator) for each in blocks[counted:i]])
                    counted = i
                    self._add_block(block, line)
        self._line += chunk.count(b"\n")

    def _add_other(self, fields: bytes, time: int) -> None:
        """Handles an event that is neither a switch nor a wakeup. Raises NotKnown."""
        name, colon, _ = fields.partition(b":")
        if colon and name in self._known.others:
            self.skipped.add(_OTHER)
        else:
            _slept(*self._known.sleep(fields), time)

    def _add_block(self, block: bytes, line: int) -> None:
        """Reads one event with its stack, or several without, or anything else. ``line`` is that of its beginning."""
        lines = block.split(b"\n")
        at = 0
        while at < len(lines):
            header = lines[at].rstrip(b"\r")
            end = at + 1
            if not header.strip() or header[:1] == b"#":
                at = end
                continue
            while end < len(lines) and lines[end][:1] in (b" ", b"\t") and not _is_padded(lines[end]):
                end += 1
            event = parse(header.lstrip(b" "))
            if event is None:
                self.skipped.add(_BAD, line + at)
            else:
                self.useful = True
                self._add_event(event, b"\n".join(lines[at + 1 : end]))
                if not at:
                    self._known.learn(header, event)
            at = end

    def _add_event(self, event: Event, text: bytes) -> None:
        if event.name == "switch":
            out = self._out(event)
            self._switch(out, self._thread(event.next_tid), event.time, self._stacks.number(text) if out.waits else 0)
        elif event.name in _WAKES:
            thread = self._thread(event.tid)
            if thread.state and (event.name == "wakeup" or thread.woken is None):
                thread.woken = event.time
        elif event.name in _SLEEPS:
            _slept(self._thread(event.tid), event.delay, event.time)
        else:
            self.skipped.add(_OTHER)

    def _thread(self, tid: int) -> _Thread:
        return self._threads.setdefault(tid, _Thread())

    def _out(self, event: Event) -> _Out:
        key = event.pid, event.tid, event.comm, event.state or PREEMPTED
        return _Out(event, self._thread(event.tid), self._cells.setdefault(key, {}))

    def _switch(self, out: _Out, into: _Thread, time: int, stack: int) -> None:
        thread = out.thread
        if out.is_main:
            self._processes[out.tid] = out.comm
        if thread.out is not None and out.waits:
            self._unended(thread, thread.out)
        if out.waits:
            thread.out, thread.state = out, out.state
            thread.begin, thread.stack = time, stack
            thread.woken = thread.delay = None
        else:
            thread.out, thread.state = None, ""
        if into.out is not None and into is not thread:
            self._end(into, into.out, time)
            into.out, into.state = None, ""

    def _end(self, thread: _Thread, out: _Out, time: int) -> None:
        begin, woken = thread.begin, thread.woken
        if time < begin or (woken is not None and woken < begin):
            self.skipped.add(_BACKWARDS)
            return
        cell = out.cells.get(thread.stack) or self._cell(out, out.state or PREEMPTED, thread.stack)
        cell.number += 1
        if woken is None:
            cell.time += time - begin
            self._unseen += out.state != ""
        elif woken >= time:
            cell.time += time - begin
        else:
            cell.time += woken - begin
            if cell.after is None:
                cell.after = self._cell(out, WOKEN, thread.stack)
            cell.after.time += time - woken
            cell.after.number += 1

    def _unended(self, thread: _Thread, out: _Out) -> None:
        """The thread ran again at an unknown time; its sleeping time may be known."""
        if thread.delay is None:
            self.skipped.add(_OPEN)
            return
        cell = out.cells.get(thread.stack) or self._cell(out, out.state, thread.stack)
        cell.time += thread.delay
        cell.number += 1

    def _cell(self, out: _Out, state: str, stack: int) -> _Cell:
        cells = self._cells.setdefault((out.pid, out.tid, out.comm, state), {})
        cell = cells.get(stack)
        if cell is None:
            cell = cells[stack] = _Cell()
            self._counted.append((stack, self._make_labels(out, state), cell))
        return cell

    def _make_labels(self, out: _Out, state: str) -> Labels:
        """The labels of a thread in a state, as they are when it is first counted."""
        key = out.pid, out.tid, out.comm, state
        known = self._labels.get(key)
        if known is None:
            labels: dict[str, str | int] = {"state": state, "thread": out.comm, "tid": out.tid}
            process = self._processes.get(out.pid, "") if out.pid is not None else ""
            labels["process"] = process or out.comm
            if out.pid is not None:
                labels["pid"] = out.pid
            known = self._labels[key] = tuple(sorted(labels.items()))
        return known

    def profile(self) -> Profile:
        """The result."""
        for thread in sorted(self._threads.values(), key=lambda thread: thread.begin):
            if thread.out is not None:
                self._unended(thread, thread.out)
                thread.out = None
        profile = Profile([ValueType("off-cpu", "nanoseconds"), ValueType("count", "count")], title="off-CPU time")
        stacks = list(self._stacks.numbers)
        for stack, labels, cell in self._counted:
            profile.samples.append(Sample(stacks[stack], (cell.time, cell.number), labels))
        self.skipped.tell(profile)
        if self._unseen:
            profile.lost[_UNSEEN] = self._unseen
        return profile


def _slept(thread: _Thread, delay: int, time: int) -> None:
    """A delay is reported when the thread is woken: it began that long before."""
    if thread.delay is None and thread.state:
        thread.delay, thread.woken = delay, time


class _Stacks(dict[bytes, int]):
    """Text of a stack → its number. Raises NotKnown for a text that may be something else."""

    def __init__(self, skipped: Skipped, options: ReadOptions) -> None:
        super().__init__()
        self.numbers: dict[Stack, int] = {}
        self._lines = _Lines(skipped, options)
        self._cached = 0

    def __missing__(self, text: bytes) -> int:
        self.skipped(text)
        return self.number(text)

    @staticmethod
    def skipped(text: bytes) -> int:
        """Returns 0 for a stack that does not matter. NotKnown unless all lines begin with a tab, as frames do."""
        if text and (text[:1] != b"\t" or text.count(b"\n\t") != text.count(b"\n")):
            raise NotKnown
        return 0

    def number(self, text: bytes) -> int:
        """The number of the stack with these lines, frames or not."""
        known = self.get(text)
        if known is not None:
            return known
        if self._cached > _MAX_CACHED or len(self._lines) > _MAX_LINES:
            self.clear()
            self._lines.clear()
            self._cached = 0
        self._cached += len(text) + 100
        frames: list[Frame] = []
        for line in reversed(text.split(b"\n") if text else []):
            frames += self._lines[line]
        stack = _without_tracing(tuple(frames))
        number = self[text] = self.numbers.setdefault(stack, len(self.numbers))
        return number


class _Lines(dict[bytes, tuple[Frame, ...]]):
    """Text of a line → its frames. Bad lines are counted, and not cached."""

    def __init__(self, skipped: Skipped, options: ReadOptions) -> None:
        super().__init__()
        self._skipped = skipped
        self._addrs = options.addrs

    def __missing__(self, line: bytes) -> tuple[Frame, ...]:
        frames = parse_frames(line.rstrip(b"\r"), addrs=self._addrs, java=False)
        if frames is None:
            self._skipped.add(_BAD)
            return ()
        self[line] = frames
        return frames


def _without_tracing(stack: Stack) -> Stack:
    """The stack without the functions that the tracepoint itself called below __schedule."""
    for i in range(len(stack) - 1, -1, -1):
        if stack[i].name == _SCHEDULE and stack[i].kind == "kernel":
            return stack[: i + 1]
    return tuple(frame for frame in stack if frame.kind != "kernel" or not frame.name.startswith(_TRACING))
