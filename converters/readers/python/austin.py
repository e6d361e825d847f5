"""The text output of austin: lines ``P<pid>;T<interpreter>:<tid>;file:function:line;… METRIC``, outermost frame first.

Lines ``# name: value`` give the mode: wall and cpu (µs), memory (bytes, below 0 when freed), full (``µs,idle,bytes``).
Without one the times are wall time, as in the first versions, whose frames ``function (file:line)`` and ``function
(file);L12`` and roots ``Process 1;Thread 2`` are read too; so are the single numbers that mojo2austin of
austin-python 2.4 writes under mode full. A frame ``:INVALID:`` means that the stack could not be read, ``:GC:`` is the
garbage collector; frames of austinp are native, or have the file ``kernel``. `mojo` reads the binary format.
Sources: austin's README.md, austin-python's collapsed_stack.py, and the output of 3.7.
"""

from __future__ import annotations

import re

from ...model import Frame, Labels, Profile, Sample, Stack, ValueType
from ..base.options import ReadOptions
from ..base.python_frames import kind_of
from ..base.skipped import Skipped
from ..base.source import Source

EXPECTED = "a sample of austin: P<pid>;T<tid>;file:function:line METRIC"
COUNT, METRIC, CPU, FREED, ALLOCATED = range(5)
"""Indices in a cell. METRIC is the time, or, in mode "memory", the allocated size."""
CELLS = 5
Cells = dict[tuple[Stack, Labels], list[int]]
MODES = {
    "wall": ((METRIC, ValueType("wall", "nanoseconds")),),
    "cpu": ((METRIC, ValueType("cpu", "nanoseconds")),),
    "memory": ((METRIC, ValueType("allocated", "bytes")), (FREED, ValueType("freed", "bytes"))),
    "full": (
        (METRIC, ValueType("wall", "nanoseconds")),
        (CPU, ValueType("cpu", "nanoseconds")),
        (ALLOCATED, ValueType("allocated", "bytes")),
        (FREED, ValueType("freed", "bytes")),
    ),
}
"""Columns of each mode: index in a cell and value type of each column but the last, the count."""

_MAX_DIGITS = 18
_MAX_CACHED = 64 << 20
"""Limit of the text for which stacks are cached, in bytes."""
_CACHE = 1 << 15
_MAX_METADATA = 100
_LONGEST = 1 << 14
"""Characters of a frame whose file has semicolons."""
_SAMPLE = re.compile(rb"(?:P\d{1,18};T|Process \d{1,18};Thread |Thread )[^; ]+[; ]")
"""Begin of a sample, which ends in a number."""
_META = re.compile(rb"# ([\w-]{1,40}): ([^\n]{0,200})\Z")
_PROCESS = re.compile(r"(?:P|Process )(\d{1,18})\Z")
_THREAD = re.compile(r"(?:T|Thread )(?:(\d{1,9}):)?(\w{1,40})\Z")
_FRAME = re.compile(r"(.*):([^:]*):(\d{0,18})\Z", re.DOTALL)
_OLD_FRAME = re.compile(r"(.+) \((.+?)(?::(\d{1,18}))?\)\Z", re.DOTALL)
_OLD_LINE = re.compile(r"L(\d{1,18})\Z")
_ONE = re.compile(rb"-?\d{1,18}\Z")
_FULL = re.compile(rb"(\d{1,18}),([01]),(-?\d{1,18})\Z")
_BAD, _OTHER_MODE = "lines not understood", "samples of another mode"
_SPECIAL = {"INVALID": Frame("[invalid]", "other"), "GC": Frame("[garbage collection]", "other")}


def sniff(head: bytes) -> bool:
    """Whether the first line that is not metadata is a sample, or the metadata name austin."""
    for line in head.splitlines():
        if (match := _SAMPLE.match(line)) and line[match.end() :].rstrip()[-1:].isdigit():
            return True
        if line.startswith(b"# austin: "):
            return True
        if line.strip() and not _META.match(line):
            return False
    return False


def read(source: Source, _: ReadOptions) -> Profile:
    """One sample per distinct stack and thread. Raises StallscopeError when there are lines, but no sample."""
    tally = _Tally(source.name)
    for chunk in source.chunks():
        tally.add(chunk)
    tally.skipped.check(source, bool(tally.cells), EXPECTED)
    profile = profile_of(tally.cells, tally.mode or "wall", tally.metadata)
    tally.skipped.tell(profile)
    return profile


def profile_of(cells: Cells, mode: str, metadata: dict[str, str]) -> Profile:
    """A profile with the columns of ``mode``. Times in the cells are µs."""
    columns = MODES[mode]
    profile = Profile([*(kind for _, kind in columns), ValueType("count", "count")], title=f"austin, mode {mode}")
    scales = [(i, 1000 if kind.unit == "nanoseconds" else 1) for i, kind in columns]
    for (stack, labels), cell in cells.items():
        values = (*(cell[i] * scale for i, scale in scales), cell[COUNT])
        profile.samples.append(Sample(stack, values, labels))
    duration = metadata.get("duration", "")
    if duration.isdecimal() and len(duration) <= _MAX_DIGITS - 3:
        profile.duration_ns = int(duration) * 1000
    return profile


def frame_of(file: str, function: str, line: int) -> Frame:
    """A frame from text or binary files."""
    if not file and function in _SPECIAL:
        return _SPECIAL[function]
    if file == "kernel":
        return Frame(function or "[unknown]", "kernel")
    return Frame(function or "[unknown]", kind_of(file), file=file, line=line)


class _Tally:
    """Sums by stack and thread, found by the text before the metric."""

    def __init__(self, name: str) -> None:
        self.skipped = Skipped(name, EXPECTED)
        self.cells: Cells = {}
        self.mode = ""
        self.metadata: dict[str, str] = {}
        self._by_text: dict[bytes, list[int]] = {}
        self._cached = 0
        self._stacks = _Stacks()
        self._usual = True
        """Whether metrics of the current mode are single numbers."""
        self._line = 1

    def add(self, chunk: bytes) -> None:
        """Counts the lines of ``chunk``, which continues where the last one ended."""
        by_text = self._by_text
        lines = chunk.split(b"\n")
        for i, line in enumerate(lines):
            stack, _, metric = line.rpartition(b" ")
            cell = by_text.get(stack)
            if cell is not None and self._usual and metric.isdigit() and len(metric) <= _MAX_DIGITS:
                cell[0] += 1
                cell[1] += int(metric)
            elif cell is not None and not self._usual and (full := _FULL.match(metric)):
                time, idle, memory = full.groups()
                add_full(cell, int(time), idle == b"1", int(memory))
            elif line:
                self._add_unusual(line.rstrip(), self._line + i)
        self._line += len(lines) - 1

    def _add_unusual(self, line: bytes, number: int) -> None:
        if line[:1] == b"#":
            self._tell(line)
            return
        stack, _, metric = line.rpartition(b" ")
        full = _FULL.match(metric)
        if not line or not (full or _ONE.match(metric)):
            if line:
                self.skipped.add(_BAD, number)
            return
        if not self.mode:
            self.mode = "full" if full else "wall"
            self._usual = not full
        elif self.mode == "full" and not full and not self.cells:
            self.mode, self._usual = "wall", True
        if bool(full) != (self.mode == "full"):
            self.skipped.add(_OTHER_MODE)
            return
        cell = self._by_text.get(stack) or self._remember(stack)
        if cell is None:
            self.skipped.add(_BAD, number)
        elif full:
            add_full(cell, int(full[1]), full[2] == b"1", int(full[3]))
        else:
            add_one(cell, int(metric))

    def _remember(self, text: bytes) -> list[int] | None:
        parsed = self._stacks.parse(text)
        if parsed is None:
            return None
        if self._cached > _MAX_CACHED:
            self._by_text.clear()
            self._cached = 0
        self._cached += len(text) + 100
        cell = self._by_text[text] = self.cells.setdefault(parsed, [0] * CELLS)
        return cell

    def _tell(self, line: bytes) -> None:
        """Handles metadata; ignores other comments."""
        match = _META.match(line)
        if match and len(self.metadata) < _MAX_METADATA:
            name, value = match[1].decode(), match[2].decode(errors="replace").strip()
            self.metadata[name] = value
            if name == "mode" and value in MODES and not self.mode:
                self.mode = value
                self._usual = value != "full"


def add_one(cell: list[int], metric: int) -> None:
    """One sample of any mode but "full"."""
    cell[COUNT] += 1
    if metric < 0:
        cell[FREED] -= metric
    else:
        cell[METRIC] += metric


def add_full(cell: list[int], time: int, idle: bool, memory: int) -> None:
    """One sample of mode "full"."""
    cell[COUNT] += 1
    cell[METRIC] += time
    cell[CPU] += 0 if idle else time
    cell[FREED] -= min(memory, 0)
    cell[ALLOCATED] += max(memory, 0)


def thread_labels(thread: str, interpreter: int) -> dict[str, str | int]:
    """A numeric thread id becomes the tid; anything else (0x7f12…) is only a name."""
    labels: dict[str, str | int] = {}
    if thread.isdecimal() and len(thread) <= _MAX_DIGITS:
        labels["tid"] = int(thread)
    else:
        labels["thread"] = thread
    if interpreter:
        labels["interpreter"] = interpreter
    return labels


class _Stacks:
    """Parses stacks; callers that several leaves share are parsed once."""

    def __init__(self) -> None:
        self._frames = _Frames()
        self._callers: dict[bytes, tuple[Stack, Labels]] = {}

    def parse(self, text: bytes) -> tuple[Stack, Labels] | None:
        """Frames and labels; None if the text is not a stack of austin."""
        caller, separator, leaf = text.rpartition(b";")
        known = self._callers.get(caller) if separator else None
        if known and (frame := self._frames[leaf.decode(errors="surrogateescape")]):
            return (*known[0], frame), known[1]
        parsed = self._parse(text.decode(errors="surrogateescape").split(";"))
        if parsed and parsed[0] and caller.count(b";") > 1 and self._frames[leaf.decode(errors="surrogateescape")]:
            if len(self._callers) >= _CACHE:
                self._callers.clear()
            self._callers[caller] = parsed[0][:-1], parsed[1]
        return parsed

    def _parse(self, fields: list[str]) -> tuple[Stack, Labels] | None:
        labels: dict[str, str | int] = {}
        start = 0
        if match := _PROCESS.match(fields[0]):
            labels["pid"] = int(match[1])
            start = 1
        if len(fields) <= start or not (match := _THREAD.match(fields[start])):
            return None
        labels.update(thread_labels(match[2], int(match[1] or 0)))
        frames = [self._frames[field] for field in fields[start + 1 :]]
        stack = self._join(fields[start + 1 :]) if None in frames else tuple(filter(None, frames))
        return None if stack is None else (stack, tuple(sorted(labels.items())))

    def _join(self, fields: list[str]) -> Stack | None:
        """Joins fields, because files may contain semicolons: a field without a line number belongs to the next one."""
        frames: list[Frame] = []
        begun = ""
        for field in fields:
            if not begun and frames and not frames[-1].line and (match := _OLD_LINE.match(field)):
                frames[-1] = frames[-1]._replace(line=int(match[1]))
            elif frame := _frame(begun + field):
                frames.append(frame)
                begun = ""
            else:
                begun += field + ";"
                if len(begun) > _LONGEST:
                    return None
        return None if begun else tuple(frames)


class _Frames(dict[str, "Frame | None"]):
    """Field → frame; None if it is not a complete frame."""

    def __missing__(self, field: str) -> Frame | None:
        frame = _frame(field)
        self[field] = frame
        return frame


def _frame(field: str) -> Frame | None:
    if match := _FRAME.match(field):
        return frame_of(match[1], match[2], int(match[3] or 0))
    # Without its end, the search would try each place with each other one.
    if field.endswith(")") and (match := _OLD_FRAME.match(field)):
        return frame_of(match[2], match[1], int(match[3] or 0))
    return None
