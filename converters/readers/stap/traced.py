"""Output of the scripts in this project's folder ``stap/`` with plain ``stap``: version 1 of the lines that
stap/README.md describes.

    stap -I stap/tapset … stap/offcpu.stp -x PID > x.stap.txt

Of wakeup.stp, a sample is the time that a thread was blocked, with who ended that. Of ioctl.stp and cuda.stp it is the
time in calls, of which those that go on when the script ends are counted up to then; of oncpu.stp the samples of what
runs; else the waits, also those that go on, with their two parts: blocked, and waiting for a core. Functions of the
kernel have no names, because only their addresses are printed, unless stap knew them.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from ...model import Frame, Labels, Profile, Sample, Stack, ValueType
from ...model.states import BY_LETTER, OTHER, PREEMPTED, RUNNING, WOKEN
from ...model.wakers import SEPARATOR as WAKER_SEPARATOR
from ...model.wakers import WAKER
from ..base.options import ReadOptions
from ..base.skipped import Skipped
from ..base.source import Source
from .lines import VERSION, Descriptor, Fork, FunctionCall, IoctlCall, Line, Lines, Name, Sampled, Wait, Woken
from .stacks import Stacks

EXPECTED = "a line of one of the scripts in stap/: see stap/README.md"

_FIRST = re.compile(rb"(?:(?:WARNING:|[A-Za-z]) .*\n){0,64}stallscope \d{1,5} \d{1,19} \d{1,19}\s")
"""Another core's lines can come before the first one."""
_BAD = "lines not understood"
_MOST = 1 << 20
_NEAREST = "names are those of the nearest symbols that SystemTap knew: in stripped programs it may be another function"
_TITLES = {
    "wakeup": "Blocked time by waker",
    "calls": "Time in calls",
    "samples": "Samples of what runs",
    "waits": "Off-CPU time",
}
"""Titles by what is shown of a text that has several: the first of them that it has."""


class _Key(NamedTuple):
    pid: int
    tid: int
    state: str
    kernel: int
    user: int
    more: Frame | Woken | None = None
    """The call; or who ended the wait, without its time."""
    is_open: bool = False


def sniff(head: bytes) -> bool:
    """Whether the first line is that of a script."""
    return bool(_FIRST.match(head))


def read(source: Source, options: ReadOptions) -> Profile:
    """One sample per thread, state and stack. Raises StallscopeError."""
    lines, skipped, taken = Lines(), Skipped(source.name, EXPECTED), _Taken()
    number = 0
    for chunk in source.chunks(b"\n"):
        for line in chunk.splitlines(keepends=True):
            number += 1
            before = lines.lost[_BAD]
            for found in lines.feed(line if line.endswith(b"\n") else line + b"\n"):
                taken.take(found)
            if lines.lost[_BAD] > before:
                skipped.add(_BAD, number)
            if lines.version not in (0, VERSION):
                source.fail(number, f"version {VERSION} of the lines, not {lines.version}")
    lines.finish()
    skipped.check(source, bool(lines.version), EXPECTED)
    stacks = lines.stacks(None)
    profile = taken.profile(stacks, options)
    profile.start_ns = lines.wall
    profile.lost |= {kind: count for kind, count in lines.lost.items() if count or kind == "events"}
    if lines.printed is None:
        profile.comments.append("the script did not come to its end: what it lost is not known")
    if stacks.has_nearest_names:
        profile.comments.append(_NEAREST)
    skipped.tell(profile)
    return profile


class _Taken:
    """Tables of what the lines tell."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._files: dict[tuple[int, int], str] = {}
        self._woken: dict[int, Woken] = {}
        self._tables: dict[str, dict[_Key, list[int]]] = {name: {} for name in _TITLES}
        self._lost: Counter[str] = Counter()

    def take(self, line: Line) -> None:
        """The next line."""
        if isinstance(line, Wait):
            self._wait(line)
        elif isinstance(line, Name):
            self._names[line.tid] = line.text
        elif isinstance(line, Woken):
            self._woken[line.tid] = line
        elif isinstance(line, Sampled):
            self._add("samples", _Key(line.pid, line.tid, RUNNING, line.kernel, line.user), 1, 1)
        elif isinstance(line, Descriptor):
            name = line.basename.decode("utf-8", "surrogateescape")
            self._files[line.pid, line.fd] = f"{line.filesystem.decode('utf-8', 'surrogateescape')} {name}".strip()
        elif isinstance(line, (IoctlCall, FunctionCall)):
            key = _Key(line.pid, line.tid, RUNNING, 0, line.user, self._call(line), line.is_open)
            self._add("calls", key._replace(state=""), line.length, int(not line.is_open))
        elif isinstance(line, Fork):
            self._woken.pop(line.tid, None)

    def _call(self, line: IoctlCall | FunctionCall) -> Frame:
        if isinstance(line, FunctionCall):
            return Frame(line.function, "api")
        on = self._files.get((line.pid, line.fd), "")
        return Frame(f"ioctl {line.command:#x} {on}".rstrip(), "api")

    def _wait(self, line: Wait) -> None:
        if line.letter == "-":
            self._lost["intervals"] += 1
            return
        state = PREEMPTED if line.letter == "R" else BY_LETTER.get(line.letter, OTHER)
        blocked, runnable = max(line.blocked, 0), max(line.runnable, 0)
        key = _Key(line.pid, line.tid, state, line.kernel, line.user, None, line.is_open)
        if line.letter == "R":
            self._add("waits", key, blocked + runnable, 1)
            return
        self._add("waits", key, blocked, 1)
        if runnable:
            self._add("waits", key._replace(state=WOKEN), runnable, 1)
        if waker := self._woken.pop(line.tid, None):
            self._add("wakeup", key._replace(more=waker._replace(time=0)), blocked, 1)

    def _add(self, table: str, key: _Key, value: int, count: int) -> None:
        rows = self._tables[table]
        if key not in rows and len(rows) >= _MOST:
            self._lost["samples"] += count
            return
        row = rows.setdefault(key, [0, 0])
        row[0] += value
        row[1] += count

    def profile(self, stacks: Stacks, options: ReadOptions) -> Profile:
        """Profile of the first table that has rows."""
        table = next((name for name in _TITLES if self._tables[name]), "waits")
        counts = table == "samples"
        columns = [ValueType("samples", "count")] if counts else [ValueType("time", "nanoseconds")]
        columns += [] if counts else [ValueType("count", "count")]
        samples = [
            Sample(self._stack(key, stacks), tuple(values[: len(columns)]), self._labels(key, options))
            for key, values in self._tables[table].items()
        ]
        return Profile(columns, samples, title=_TITLES[table], lost=dict(self._lost))

    def _stack(self, key: _Key, stacks: Stacks) -> Stack:
        frames = stacks.of(0, key.user)
        if isinstance(key.more, Frame):
            is_there = any(frame.name == key.more.name for frame in frames)
            return frames if is_there else (*frames, key.more)
        frames = stacks.of(key.kernel, key.user) or (Frame("[no stack]", "other"),)
        return frames + self._waker(key.more, stacks) if key.more else frames

    def _waker(self, woken: Woken, stacks: Stacks) -> Stack:
        """The frames of who ended a wait, innermost first."""
        own = stacks.of(woken.kernel, woken.user)
        name = f"{self._process(woken.waker_pid)}-{woken.waker_tid}" if woken.waker_tid else "[interrupt]"
        return (WAKER_SEPARATOR, *(frame._replace(kind=WAKER) for frame in reversed(own)), Frame(name, WAKER))

    def _labels(self, key: _Key, options: ReadOptions) -> Labels:
        labels: dict[str, str | int] = {"process": self._process(key.pid), "thread": self._names.get(key.tid, "")}
        if key.state:
            labels["state"] = key.state
        if options.pid or options.tid:
            labels["pid"] = key.pid
        if options.tid:
            labels["tid"] = key.tid
        if key.is_open:
            labels["open"] = "yes"
        return tuple(sorted(labels.items()))

    def _process(self, pid: int) -> str:
        return self._names.get(pid, "") or "[unknown]"
