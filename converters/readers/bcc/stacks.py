"""The output of bcc's tools without -f: one frame per line, innermost first, then the process, then the value.

offcputime and profile, of bcc and of libbpf-tools, end a stack with ``    -                comm (pid)``, followed by a
line with the value; stackcount has only the value, or ``    comm [pid]`` with -P (tools/*.py of bcc 0.26). With -d,
``--`` separates the kernel's frames from the user's if a stack has both; without it, the kernel's frames end at an
entry point. Values are times if bcc's tool begins with the line ``Tracing off-CPU time (us)``; otherwise they are
counts.
"""

from __future__ import annotations

import re
from collections import defaultdict

from ...model import Frame, Kind, Labels, Profile, Sample, ValueType
from ..base.options import ReadOptions
from ..base.skipped import EXPECTED_TEXT, NUL, Skipped
from ..base.source import Source
from ..base.stack_tally import MAX_DIGITS
from ..bpftrace.frames import is_kernel

EXPECTED = "a stack of bcc: frames one a line, '    -                comm (pid)', then its value"

_OWNER = re.compile(rb"    (?:-  {14,}(\S.*) \((\d{1,10})\)|(\S.*) \[(\d{1,10})\])\Z", re.DOTALL)
_STACKCOUNT = re.compile(rb'Tracing \d+ functions for "')
_HEADER = re.compile(rb"Tracing .*|Sampling at .*|Detaching\.\.\.|WARNING: .*", re.DOTALL)
_TIMES = b"Tracing off-CPU time (us)"
_SNIFFED = 2000
_MAX_FRAMES = 10_000
_MAX_LINE = 1 << 14
_MAX_NAMES = 1 << 18
_BAD, _CUT = "lines not understood", "stacks without a value at the end"
_Key = tuple[tuple[Frame, ...], Labels]


def sniff(head: bytes) -> bool:
    """Whether there is a line with a process, followed by a line with only a number, or stackcount's first line."""
    lines = head.splitlines()[:_SNIFFED]
    return any(map(_STACKCOUNT.match, lines[:1])) or any(
        _OWNER.match(line) and below.strip().isdigit() for line, below in zip(lines, lines[1:], strict=False)
    )


def read(source: Source, options: ReadOptions) -> Profile:
    """One sample per distinct stack and process; ids with options.pid. StallscopeError when there is no stack."""
    stacks = _Stacks(source.name, options.pid)
    for chunk in source.chunks():
        for line in chunk.split(b"\n"):
            stacks.add(line)
    profile = stacks.profile()
    stacks.skipped.check(source, bool(profile.samples), EXPECTED)
    return profile


class _Stacks:
    """Sums by stack and process."""

    def __init__(self, name: str, pid: bool) -> None:
        self.skipped = Skipped(name, EXPECTED)
        self._pid = pid
        self._weights: defaultdict[_Key, int] = defaultdict(int)
        self._frames: dict[tuple[bytes, Kind], Frame] = {}
        self._open: list[bytes] = []
        """Names of the stack whose value has not been read yet, innermost first."""
        self._labels: Labels = ()
        self._times = False
        self._line = 0

    def add(self, line: bytes) -> None:
        """Reads one line."""
        self._line += 1
        word = line.strip()
        if not word:
            return
        if b"\0" in line:
            self.skipped.add(NUL, self._line, expected=EXPECTED_TEXT)
        elif line[:1] not in (b" ", b"\t"):
            self._times |= line.startswith(_TIMES)
            if not _HEADER.match(line):
                self.skipped.add(_BAD, self._line)
        elif word.isdigit():
            self._end(word)
        elif match := _OWNER.match(line):
            self._labels = self._owner(match[1] or match[3], int(match[2] or match[4]))
        elif len(self._open) >= _MAX_FRAMES or len(word) > _MAX_LINE:
            self.skipped.add(_BAD, self._line)
        else:
            self._open.append(word)

    def _owner(self, comm: bytes, pid: int) -> Labels:
        process = ("process", comm.decode(errors="surrogateescape"))
        return (("pid", pid), process) if self._pid else (process,)

    def _end(self, value: bytes) -> None:
        if len(value) > MAX_DIGITS or not (self._open or self._labels):
            self.skipped.add(_BAD, self._line)
        else:
            self._weights[self._stack(self._open), self._labels] += int(value)
        self._open, self._labels = [], ()

    def _stack(self, names: list[bytes]) -> tuple[Frame, ...]:
        if b"--" in names:
            at = names.index(b"--")
            inner, outer = names[:at], names[at + 1 :]
        else:
            at = self._end_of_kernel(names)
            inner, outer = names[:at], names[at:]
        frames = [self._frame(name, "kernel") for name in inner] + [self._frame(name, "native") for name in outer]
        return tuple(reversed(frames))

    def _end_of_kernel(self, names: list[bytes]) -> int:
        """Number of frames that belong to the kernel: none, or up to the outermost of the first entry points."""
        entries = [is_kernel(self._frame(name, "native")) for name in names]
        if True not in entries:
            return 0
        at = entries.index(True)
        while at < len(names) and entries[at]:
            at += 1
        return at

    def _frame(self, name: bytes, kind: Kind) -> Frame:
        frame = self._frames.get((name, kind))
        if frame is None:
            if len(self._frames) >= _MAX_NAMES:
                self._frames.clear()
            frame = self._frames[name, kind] = Frame(name.decode(errors="surrogateescape"), kind)
        return frame

    def profile(self) -> Profile:
        """The result."""
        if self._open:
            self.skipped.add(_CUT)
        kind = ValueType("off-cpu", "nanoseconds") if self._times else ValueType("samples", "count")
        scale = 1000 if self._times else 1
        samples = [Sample(stack, (value * scale,), labels) for (stack, labels), value in self._weights.items() if value]
        profile = Profile([kind], samples, title="stacks of bcc")
        self.skipped.tell(profile)
        return profile
