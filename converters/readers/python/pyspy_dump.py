"""The text of ``py-spy dump``: one or more dumps in sequence, with the stacks of all threads. Each stack counts as one
sample, as in dumps of gdb.

``Process PID: command line`` and ``Python v…`` begin a process, ``Thread TID (active+gil): "name"`` a thread, whose
frames follow innermost first: ``    function (file.py:12)``. Local variables (-l) are indented further. Source:
src/dump.rs of py-spy.
"""

from __future__ import annotations

import re
from collections import defaultdict

from ...model import Frame, Labels, Profile, Sample, Stack, ValueType
from ...model.losses import cut
from ..base.options import ReadOptions
from ..base.python_frames import py_spy_frame
from ..base.skipped import Skipped
from ..base.source import Source

EXPECTED = "a line of py-spy dump: 'Process PID: …', 'Thread TID (idle): \"name\"' or '    function (file.py:12)'"

_BEGIN = re.compile(rb"^Process \d{1,18}: [^\n]*\nPython v\d", re.MULTILINE)
_PROCESS = re.compile(rb"(Parent )?Process (\d{1,18}): ?(.*)", re.DOTALL)
_THREAD = re.compile(rb'Thread (?:(\d{1,18})|(0x[0-9a-fA-F]{1,16})) \([\w+ ]*\)(?:: "(.*)")?\Z', re.DOTALL)
_FRAME = re.compile(rb"    (?=\S)(.+ \([^()]*\))\Z", re.DOTALL)
_DEEPER = b" " * 8
"""Indentation of local variables."""
_BAD, _EMPTY, _CUT = "lines not understood", "threads without a stack", cut("short at the end")
_MAX_FRAMES = 10_000


def sniff(head: bytes) -> bool:
    """Whether a process begins in the first lines."""
    return _BEGIN.search(head) is not None


def read(source: Source, options: ReadOptions) -> Profile:
    """One sample per distinct stack and thread. Raises StallscopeError."""
    dumps = _Dumps(source.name, options)
    for chunk in source.chunks():
        *lines, last = chunk.split(b"\n")
        for line in lines:
            dumps.add(line.rstrip(b"\r"))
        dumps.add_last(last)
    profile = dumps.profile()
    dumps.skipped.check(source, bool(profile.samples), EXPECTED)
    return profile


class _Frames(dict[bytes, Frame]):
    """``function (file.py:12)`` → frame."""

    def __init__(self, addrs: bool) -> None:
        super().__init__()
        self._addrs = addrs

    def __missing__(self, text: bytes) -> Frame:
        frame = self[text] = py_spy_frame(_text(text), self._addrs)
        return frame


class _Dumps:
    """Stacks by thread."""

    def __init__(self, name: str, options: ReadOptions) -> None:
        self.skipped = Skipped(name, EXPECTED)
        self._frames = _Frames(options.addrs)
        self._counts: defaultdict[tuple[Stack, Labels], int] = defaultdict(int)
        self._process: dict[str, str | int] = {}
        self._thread: Labels | None = None
        self._stack: list[Frame] = []
        """Frames of the thread so far, innermost first."""
        self._line = 0

    def add(self, line: bytes) -> None:
        """Reads one line."""
        self._line += 1
        if line.startswith(b" "):
            self._add_frame(line)
            return
        self._end()
        if match := _PROCESS.match(line):
            if not match[1]:
                self._process = {"pid": int(match[2]), **({"process": _text(match[3])} if match[3] else {})}
        elif match := _THREAD.match(line):
            labels = dict(self._process)
            if match[1]:
                labels["tid"] = int(match[1])
            if name := match[3] or match[2]:
                labels["thread"] = _text(name)
            self._thread = tuple(sorted(labels.items()))
        elif line.strip() and not line.startswith(b"Python v"):
            self.skipped.add(_BAD, self._line)

    def add_last(self, line: bytes) -> None:
        """Reads the end of the text, a line that may be cut."""
        if line and self._thread is not None and not _FRAME.match(line):
            self.skipped.add(_CUT)
            self._thread, self._stack = None, []
        elif line:
            self.add(line)

    def _add_frame(self, line: bytes) -> None:
        match = _FRAME.match(line)
        if match and self._thread is not None and len(self._stack) < _MAX_FRAMES:
            self._stack.append(self._frames[match[1]])
        elif not line.startswith(_DEEPER):
            self.skipped.add(_BAD, self._line)

    def _end(self) -> None:
        if self._thread is not None and self._stack:
            self._counts[tuple(reversed(self._stack)), self._thread] += 1
        elif self._thread is not None:
            self.skipped.add(_EMPTY)
        self._thread, self._stack = None, []

    def profile(self) -> Profile:
        """The result."""
        self._end()
        samples = [Sample(stack, (count,), labels) for (stack, labels), count in self._counts.items()]
        profile = Profile([ValueType("samples", "count")], samples, title="py-spy dumps")
        self.skipped.tell(profile)
        return profile


def _text(name: bytes) -> str:
    return name.decode(errors="surrogateescape")
