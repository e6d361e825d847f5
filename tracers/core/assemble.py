"""From a `Capture` to a `Profile`: names, states, shares of time, and what was lost."""

from __future__ import annotations

import os
import re
import socket
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...converters.model import Frame, Labels, Profile, Sample, Stack, ThreadTimes, ValueType
from ...converters.units import plural
from ..symbols.kallsyms import Kallsyms
from ..symbols.lines import LineTool
from ..symbols.process import NOW
from ..symbols.symboliser import UNMAPPED, Symboliser
from .progress import Progress
from .records import BLOCKED, ENDS, MAX_FRAMES, NEW, ON_CPU, OTHER, PREEMPTED, STATES, ThreadRecord, WaitKey, WaitSum
from .session import Capture

OFF_CPU_VALUES = (
    ValueType("off-cpu", "nanoseconds"),
    ValueType("count", "count"),
    ValueType("min", "nanoseconds", "min"),
    ValueType("max", "nanoseconds", "max"),
)
WOKEN, PREEMPTED_LABEL = "runnable-woken", "runnable-preempted"
BLOCKED_STATES = tuple(state for state in STATES if state not in ("preempted", "new"))

_LOST_STACK = Frame("[stack lost]", "other")
_NO_STACK = Frame("[no stack]", "other")
_UNREPORTED = Frame("[switch not reported]", "other")
_NOT_BEGUN = Frame("[not started yet]", "other")
_SCHEDULE = "__schedule"
_UNNAMED = re.compile(r"\[(?!stack lost|no stack|not started|switch not)")
"""Names of the symboliser for frames that have none: [libfoo.so+0x1a2b], [anon], [unmapped], …"""
_INCOMPLETE = {end: f"stacks not complete: {end}" for end in ENDS} | {"too deep": f"stacks cut at {MAX_FRAMES} frames"}
_NO_RULE = ENDS.index("no unwind rule")
_STARTS = ("_start", "__clone", "clone", "__clone3", "clone3")
_TRACING = ("bpf_", "__bpf_", "__traceiter_", "___bpf_prog_run")


@dataclass(frozen=True)
class Filter:
    """Which waits go into the samples: off-CPU intervals in ns, and state labels (None: all)."""

    shortest: int = 0
    longest: int = (1 << 64) - 1
    states: frozenset[str] | None = None


@dataclass(frozen=True)
class Naming:
    """What is said of frames (source lines, by this tool) and of processes (the pid inside of their container)."""

    lines: LineTool | None = None
    container_pids: bool = False


class _Part(NamedTuple):
    """The blocked or the runnable part of a wait, as one sample's state and values."""

    state: str
    values: tuple[int, int, int, int]


def off_cpu_profile(capture: Capture, chosen: Filter, naming: Naming = Naming()) -> Profile:
    """The profile with `OFF_CPU_VALUES`; labels pid, process, tid, thread, state and open, as the model lists them."""
    waits = [(key, total, False) for key, total in _closed_waits(capture).items()]
    for record in capture.threads:
        if not record.exited and (open_wait := _open_wait(record, chosen)):
            waits.append((record.thread.key, open_wait, True))
    stacks = _Stacks(capture, [(key, is_open) for key, _, is_open in waits], naming.lines)
    names = _Names(capture, container_pids=naming.container_pids)
    labels: dict[tuple[int, int, str, bool], Labels] = {}
    samples = []
    reached: Counter[int] = Counter()
    for key, total, is_open in waits:
        stack = stacks.of(key, is_open)
        for part in _parts(key, total):
            if chosen.states is not None and part.state not in chosen.states:
                continue
            reached[stacks.end_of(key, is_open)] += part.values[0]
            who = (key.tgid, key.tid, part.state, is_open)
            if who not in labels:
                labels[who] = names.labels(*who)
            samples.append(Sample(stack, part.values, labels[who]))
    lost = _lost(capture, stacks)
    return Profile(
        list(OFF_CPU_VALUES),
        samples,
        title=_title(capture, names),
        host=socket.gethostname(),
        start_ns=capture.wall_ns,
        duration_ns=capture.stopped - capture.began,
        threads=[names.times(record) for record in capture.threads],
        lost=lost,
        comments=_comments(capture, lost, stacks) + _completeness(reached),
    )


def _closed_waits(capture: Capture) -> dict[WaitKey, WaitSum]:
    """The map of waits, and what threads that are still there had not written to it yet."""
    waits = dict(capture.waits)
    for record in capture.threads:
        thread = record.thread
        if not record.exited and thread.sum.waits:
            key = thread.sum_key
            waits[key] = waits[key] + thread.sum if key in waits else thread.sum
    return waits


def _parts(key: WaitKey, total: WaitSum) -> Iterator[_Part]:
    runnable = (total.runnable, total.waits, total.runnable_min, total.runnable_max)
    if key.state in (PREEMPTED, NEW):
        yield _Part(PREEMPTED_LABEL if key.state == PREEMPTED else WOKEN, runnable)
        return
    yield _Part(STATES[key.state], (total.blocked, total.waits, total.blocked_min, total.blocked_max))
    if total.runnable:
        yield _Part(WOKEN, runnable)


def _open_wait(record: ThreadRecord, chosen: Filter) -> WaitSum | None:
    """The interval that was open when the trace ended, counted up to there."""
    thread = record.thread
    if thread.phase == ON_CPU or not thread.out:
        return None
    whole = record.end - thread.out
    if not chosen.shortest <= whole <= chosen.longest:
        return None
    blocked = 0
    if thread.phase == BLOCKED:
        blocked = whole
    elif thread.key.state not in (PREEMPTED, NEW) and thread.woken:
        blocked = thread.woken - thread.out
    runnable = whole - blocked
    return WaitSum(1, blocked, blocked, blocked, runnable, runnable, runnable)


class _Stacks:
    """The frames of every stack that a wait refers to, resolved in bulk."""

    def __init__(self, capture: Capture, waits: list[tuple[WaitKey, bool]], lines: LineTool | None) -> None:
        """``waits``: with whether they were open when the trace ended."""
        self.missing = 0
        self.ends: Counter[str] = Counter()
        """Stacks that are not complete, by reason."""
        self._capture = capture
        progress = Progress()
        symboliser = Symboliser(capture.spaces, Kallsyms.read(), lines, progress.show)
        known = capture.stacks
        kernel = sorted({key.kstack for key, _ in waits if key.kstack in known})
        named = symboliser.kernel_stacks([known[stack] for stack in kernel])
        self._kernel = dict(zip(kernel, map(_without_tracing, named), strict=True))
        user = sorted({self._space(*wait) for wait in waits if wait[0].ustack in known})
        frames = symboliser.user_stacks([(tgid, epoch, known[stack]) for tgid, epoch, stack in user])
        progress.clear()
        self.problems = symboliser.problems
        self._user = dict(zip(user, frames, strict=True))
        self.unnamed: Counter[str] = Counter()
        """Frames without a name in distinct stacks, by the module that they are in."""
        self._whole: dict[tuple[tuple[int, int, int], int], Stack] = {}

    def _space(self, key: WaitKey, is_open: bool) -> tuple[int, int, int]:
        # Of a thread that waits as the trace ends it is known what its process has mapped just then.
        if is_open:
            return key.tgid, NOW, key.ustack
        return key.tgid, self._capture.epochs.epoch(key.tgid, key.execs), key.ustack

    def of(self, key: WaitKey, is_open: bool) -> Stack:
        """User frames, then kernel frames."""
        if key.state == NEW:
            return (_NOT_BEGUN,)
        where = (self._space(key, is_open), key.kstack)
        if where not in self._whole:
            stack = self._whole[where] = self._join(*where)
            self.unnamed.update(_place(frame) for frame in stack if _UNNAMED.match(frame.name))
        # Taken in while it slept, without its stack; or its switch-out was not reported.
        return self._whole[where] or ((_UNREPORTED,) if key.state == OTHER else (_NO_STACK,))

    def end_of(self, key: WaitKey, is_open: bool) -> int:
        """Where the walk up the user stack ended, as index into ENDS; -1 without one."""
        found = self._user.get(self._space(key, is_open))
        return -1 if found is None else self._end(key.ustack, found)

    def _end(self, stack: int, frames: Stack) -> int:
        end = self._capture.ends.get(stack, 0)
        # Where a thread starts, in assembly, some C libraries (musl) have no unwind rules.
        return 0 if end == _NO_RULE and frames and frames[0].name in _STARTS else end

    def _join(self, user: tuple[int, int, int], kernel: int) -> Stack:
        frames: Stack = ()
        for wanted, found in ((user[2], self._user.get(user)), (kernel, self._kernel.get(kernel))):
            if found is not None:
                frames += _without_strays(found)
                if end := self._end(wanted, found):
                    self.ends[ENDS[end]] += 1
            elif wanted:
                frames += (_LOST_STACK,)
                self.missing += 1
        return frames


def _place(frame: Frame) -> str:
    return os.path.basename(frame.module.path) if frame.module else frame.name


def _without_strays(stack: Stack) -> Stack:
    """Without what lies outward of an address that no mapping holds: there the walk had lost its way."""
    for i in range(len(stack) - 2, -1, -1):
        if stack[i].name == UNMAPPED:
            return stack[i + 1 :]
    return stack


def _without_tracing(stack: Stack) -> Stack:
    """Kernel frames without our own: nothing below __schedule, where the tracepoint is."""
    for i in range(len(stack) - 1, -1, -1):
        if stack[i].name == _SCHEDULE:
            return stack[: i + 1]
    return tuple(frame for frame in stack if not frame.name.startswith(_TRACING))


class _Names:
    """Names of threads and processes."""

    def __init__(self, capture: Capture, *, container_pids: bool) -> None:
        processes = capture.spaces.processes
        self._processes = {pid: process.comm for pid, process in processes.items()}
        self._inside = {
            pid: process.nspid for pid, process in processes.items() if container_pids and process.nspid != pid
        }
        self._threads: dict[tuple[int, int], str] = {}
        for record in capture.threads:
            key = record.thread.key
            name = os.fsdecode(record.comm)
            self._threads[key.tgid, key.tid] = name
            if key.tgid == key.tid and name:
                self._processes[key.tgid] = name

    def process(self, pid: int) -> str:
        name = self._comm(pid)
        return f"{name} ({self._inside[pid]} inside)" if pid in self._inside else name

    def thread(self, pid: int, tid: int) -> str:
        return self._threads.get((pid, tid), "") or self._comm(pid)

    def _comm(self, pid: int) -> str:
        return self._processes.get(pid, "") or "[unknown]"

    def labels(self, pid: int, tid: int, state: str, is_open: bool) -> Labels:
        pairs: list[tuple[str, str | int]] = [
            ("pid", pid),
            ("process", self.process(pid)),
            ("state", state),
            ("thread", self.thread(pid, tid)),
            ("tid", tid),
        ]
        return tuple([("open", "yes"), *pairs] if is_open else pairs)

    def times(self, record: ThreadRecord) -> ThreadTimes:
        """The thread's accounting, the phase that it is in counted up to the end."""
        thread = record.thread
        on_cpu, runnable = thread.on_cpu, thread.runnable
        blocked = dict(zip(STATES, thread.blocked, strict=True))
        rest = 0 if record.exited else record.end - thread.since
        if thread.phase == ON_CPU:
            on_cpu += rest
        elif thread.phase == BLOCKED:
            blocked[STATES[thread.key.state]] += rest
        else:
            runnable += rest
        key = thread.key
        return ThreadTimes(
            key.tgid,
            self.process(key.tgid),
            key.tid,
            self.thread(key.tgid, key.tid),
            record.end - thread.start,
            on_cpu,
            runnable,
            {state: blocked[state] for state in BLOCKED_STATES if blocked[state]},
            thread.switches,
            record.exited,
        )


def _title(capture: Capture, names: _Names) -> str:
    processes = Counter(names.process(pid) for pid in {record.thread.key.tgid for record in capture.threads})
    if len(processes) > 3:
        return f"Off-CPU time of {processes.total()} processes"
    whom = [f"{count} × {name}" if count > 1 else name for name, count in processes.most_common()]
    return f"Off-CPU time of {', '.join(whom)}" if whom else "Off-CPU time"


def _lost(capture: Capture, stacks: _Stacks) -> dict[str, int]:
    counters = capture.counters
    lost = {
        "intervals": counters["lost_waits"],
        "stacks": stacks.missing,
        "threads": counters["lost_threads"],
        "exit and exec records": counters["lost_records"],
        "address space records": capture.lost_sideband,
        "user stacks that could not be read": counters["stacks_failed"],
        **{_INCOMPLETE[end]: stacks.ends[end] for end in ENDS[1:]},
        "frames without a name": stacks.unnamed.total(),
    }
    return lost | {kind: count for kind, count in capture.spaces.lost.items() if count}


def details(capture: Capture) -> list[str]:
    """How the stacks were taken: how many were recognised, how often that was checked, what the tables took."""
    counters = capture.counters
    lines = []
    for whose, name in (("user", "user_memo"), ("kernel", "memo")):
        hits, checks, wrong = (counters[f"{name}_{what}"] for what in ("hits", "checks", "wrong"))
        lines.append(
            f"{whose} stacks recognised without unwinding: {hits:,}; checked: {checks:,}, of these wrong: {wrong:,}"
        )
    tables = capture.tables
    lines.append(f"user stacks walked again while their threads waited: {counters['late_stacks']:,}")
    if tables is not None:
        lines.append(f"unwind tables: {tables.bytes >> 20} MB for {plural(tables.files, 'file')}")
        lines += [f"files without a table: {count} ({why})" for why, count in sorted(tables.refused.items())]
        if tables.evicted or tables.no_room:
            lines.append(f"tables that left for want of room: {tables.evicted:,}; that found none: {tables.no_room:,}")
        if tables.problem:
            lines.append(f"no more memory for tables: {tables.problem}")
    return lines


def _completeness(reached: Counter[int]) -> list[str]:
    """``reached``: off-CPU time by `_Stacks.end_of`."""
    del reached[-1]
    if not (total := reached.total()) or reached[0] == total:
        return []
    rest = [f"{ENDS[end]} {time / total:.2%}" for end, time in reached.most_common() if end and time]
    whole = min(reached[0] / total, 0.9999)  # "100.00%" is all
    return [f"{whole:.2%} of the time in user code is in complete stacks; others: {', '.join(rest)}"]


def _comments(capture: Capture, lost: dict[str, int], stacks: _Stacks) -> list[str]:
    """What the reader should know, and which option would have helped."""
    comments = [*capture.notes, *stacks.problems]
    if capture.exit_status:
        comments.append(f"the command ended with status {capture.exit_status}")
    counters = capture.counters
    if unseen := counters["missed_ins"] + counters["missed_outs"] + counters["missed_waits"]:
        comments.append(f"{plural(unseen, 'wait')} of which a switch was not seen: timed by the thread's CPU time")
    if capture.reused:
        comments.append(f"{plural(capture.reused, 'thread id')} came back for other threads: they are told as one")
    for whose, name in (("user", "user_memo"), ("kernel", "memo")):
        if wrong := counters[f"{name}_wrong"]:
            checked = counters[f"{name}_checks"]
            comments.append(f"{wrong} of {checked} {whose} stacks that were recognised, and checked, were others")
    if capture.tables and capture.tables.no_room:
        comments.append("the unwind tables did not fit: raise --unwind-memory, or trace fewer processes")
    if lost["intervals"] or counters["stack_table_full"]:
        comments.append("the kernel side's tables were full: raise --table-size, or trace fewer processes")
    if lost["stacks"] or lost["exit and exec records"]:
        comments.append("the ring buffer was full: raise --buffer")
    if stacks.unnamed:
        where = [f"{count} in {place}" for place, count in stacks.unnamed.most_common(3)]
        rest = stacks.unnamed.total() - sum(count for _, count in stacks.unnamed.most_common(3))
        comments.append(f"frames without a name: {', '.join(where)}{f', {rest} elsewhere' if rest else ''}")
    return comments
