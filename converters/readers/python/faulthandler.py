"""Dumps that Python's faulthandler prints for signals, timeouts and crashes: each thread of a dump is one sample.

``Thread 0x7f12 [name] (most recent call first):`` (the name since Python 3.14; ``Current thread``; ``Stack`` for a
single thread), then ``File "x.py", line 3 in f``, innermost first. Anything else is the program's own output, and is
counted, because dumps go to standard error. The functions in a C stack (Python 3.14) that were called from Python
are appended to the thread's stack. A frame ``...`` means that the outermost frames are missing. Python 3.13 does not
print it, so a stack of 100 frames, the maximum, counts as cut short. Source: Python/traceback.c in CPython.
"""

from __future__ import annotations

import re

from ...model import Frame, Labels, Module, Profile, Sample, Stack, ValueType
from ...model.losses import cut
from ..base.options import ReadOptions
from ..base.python_frames import kind_of
from ..base.skipped import Skipped
from ..base.source import Source

EXPECTED = 'a dump of faulthandler: Thread 0x7f12 (most recent call first), then File "x.py", line 3 in f'

_SNIFFED = 500
_THREAD = re.compile(
    rb"(?:(Current t|T)hread 0x([0-9a-f]{1,16})(?: \[(.*)\])?|(Stack)) \(most recent call first\):\s*\Z"
)
_C_STACK = re.compile(rb"Current thread's C stack trace \(most recent call first\):\s*\Z")
_FRAME = re.compile(rb'  File (?:"(.*)"|\?\?\?), line (\d{1,18}|\?\?\?) in (.*)\Z')
_C_FRAME = re.compile(rb'  Binary file "(.*)", at (\S*?)(?:\+0x[0-9a-f]+)? \[0x[0-9a-f]+\]\s*\Z')
_EVALUATOR = "_PyEval_EvalFrame"
_NO_FRAME, _MORE, _C_MORE = b"<no Python frame>", b"...", b"<truncated rest of calls>"
_COLLECTING = b"Garbage-collecting"
_ABOUT = (b"Timeout (", b"Fatal Python error: ", b"Extension modules: ", b"Python runtime state: ")
"""Lines around dumps."""
_GC = Frame("[garbage collection]", "other")
_MAX_FRAMES = 10_000
_MAX_DUMPED = 100
"""MAX_FRAME_DEPTH of CPython."""
_MAX_CACHED = 64 << 20
_OTHER_TEXT, _CUT_STACKS = "lines outside of dumps", cut("short")
_NO_PYTHON, _LONE_C = "threads without a Python frame", "C stacks that show no call from Python"

_Key = tuple[Stack, Labels]


def sniff(head: bytes) -> bool:
    """Whether the first lines include the head of a thread, with a frame below it."""
    lines = head.splitlines()[:_SNIFFED]
    return any(
        _THREAD.match(line) and below.startswith((b'  File "', b"  File ???", b"  " + _NO_FRAME, b"  " + _COLLECTING))
        for line, below in zip(lines, lines[1:], strict=False)
    )


def read(source: Source, _: ReadOptions) -> Profile:
    """One sample per distinct stack and thread: number of dumps. Raises StallscopeError if there is no dump."""
    tally = _Tally(source.name)
    for chunk in source.chunks(b"\n\n"):
        tally.add(chunk)
    profile = tally.profile()
    if not profile.samples:
        source.fail(1, EXPECTED)
    return profile


class _Tally:
    """Dumps by thread and stack."""

    def __init__(self, name: str) -> None:
        self._skipped = Skipped(name, EXPECTED)
        self._counts: dict[_Key, list[int]] = {}
        self._blocks: dict[bytes, list[int]] = {}
        """Text that consists of exactly one thread's stack → its cell."""
        self._cached = 0
        self._frames = _Frames()
        # The thread that is being read.
        self._key: tuple[Labels] | None = None
        self._lines: list[Frame] = []
        self._cut = False
        # The thread to which a C stack belongs.
        self._current: _Key | None = None
        self._is_current = False
        self._c_lines: list[Frame] | None = None

    def add(self, chunk: bytes) -> None:
        """Counts the threads of ``chunk``, which continues where the last one ended."""
        known = self._blocks
        blocks = chunk.split(b"\n\n")
        last = len(blocks) - 1
        for i, block in enumerate(blocks):
            cell = known.get(block)
            if cell is not None and i < last and self._key is None and self._c_lines is None:
                cell[0] += 1
            else:
                self._add_lines(block, ended=i < last)

    def _add_lines(self, block: bytes, *, ended: bool) -> None:
        lines = block.split(b"\n")
        if not ended and not lines[-1]:
            lines.pop()
        usual = 1 < len(lines) <= _MAX_DUMPED  # longer stacks are cut short, and each has to be counted
        plain = usual and self._key is None and self._c_lines is None and lines[0].startswith(b"Thread ")
        for i, line in enumerate(lines):
            plain = plain and self._is_plain(line, i)
            self._add_line(line)
        if ended:
            cell = self._end()
            if plain and cell is not None:
                if self._cached > _MAX_CACHED:
                    self._blocks.clear()
                    self._cached = 0
                self._cached += len(block) + 100
                self._blocks[block] = cell

    def _is_plain(self, line: bytes, number: int) -> bool:
        return bool(_THREAD.match(line) if number == 0 else _FRAME.match(line))

    def _add_line(self, line: bytes) -> None:
        if self._key is not None and self._add_frame(line):
            return
        if self._c_lines is not None and self._add_c_frame(line):
            return
        self._end()
        if match := _THREAD.match(line):
            labels: list[tuple[str, str | int]] = []
            if name := match[3] or (b"0x" + match[2] if match[2] else b""):
                labels.append(("thread", name.decode(errors="surrogateescape")))
            self._key = (tuple(labels),)
            self._is_current = match[1] == b"Current t" or match[4] is not None
        elif _C_STACK.match(line):
            self._c_lines = []
        elif line.strip() and not line.startswith(_ABOUT):
            self._skipped.add(_OTHER_TEXT)

    def _add_frame(self, line: bytes) -> bool:
        frame = self._frames[line]
        if frame is not None:
            if len(self._lines) < _MAX_FRAMES:
                self._lines.append(frame)
            return True
        word = line.strip()
        if word == _MORE:
            self._cut = True
        elif word == _COLLECTING:
            self._lines.append(_GC)
        return word in (_MORE, _COLLECTING, _NO_FRAME)

    def _add_c_frame(self, line: bytes) -> bool:
        match = _C_FRAME.match(line)
        if match and self._c_lines is not None and len(self._c_lines) < _MAX_FRAMES:
            file = match[1].decode(errors="surrogateescape")
            name = match[2].decode(errors="surrogateescape") or f"[{file.rpartition('/')[2]}]"
            self._c_lines.append(Frame(name, "native", Module(file)))
        return match is not None or line.strip() in (_C_MORE, _MORE)

    def _end(self) -> list[int] | None:
        """The cell of the thread that ends here."""
        cell = None
        if self._key is not None:
            if not self._lines:
                self._skipped.add(_NO_PYTHON)
            if self._cut or len(self._lines) == _MAX_DUMPED:
                self._skipped.add(_CUT_STACKS)
            key = tuple(reversed(self._lines)), self._key[0]
            cell = self._counts.setdefault(key, [0])
            cell[0] += 1
            if self._is_current:
                self._current = key
        elif self._c_lines is not None:
            self._append_c_stack(self._c_lines)
            self._c_lines = None
        self._key, self._lines, self._cut, self._is_current = None, [], False, False
        return cell

    def _append_c_stack(self, lines: list[Frame]) -> None:
        """Appends the functions called from Python; ``lines`` are innermost first, as printed."""
        end = next((i for i, frame in enumerate(lines) if frame.name.startswith(_EVALUATOR)), None)
        if end is None or self._current is None:
            self._skipped.add(_LONE_C)
            return
        stack, labels = self._current
        self._counts[self._current][0] -= 1
        self._counts.setdefault(((*stack, *reversed(lines[:end])), labels), [0])[0] += 1
        self._current = None

    def profile(self) -> Profile:
        """The result."""
        self._end()
        profile = Profile([ValueType("samples", "count")], title="faulthandler dumps")
        for (stack, labels), (count,) in self._counts.items():
            if count:
                profile.samples.append(Sample(stack, (count,), labels))
        self._skipped.tell(profile)
        return profile


class _Frames(dict[bytes, "Frame | None"]):
    """Line → frame; None if it is not a frame."""

    def __missing__(self, line: bytes) -> Frame | None:
        match = _FRAME.match(line)
        if match is None:
            return None
        file = (match[1] or b"").decode(errors="surrogateescape")
        name = match[3].rstrip().decode(errors="surrogateescape")
        number = int(match[2]) if match[2].isdigit() else 0
        kind = kind_of(file) if file else "python"
        frame = self[line] = Frame(name if name and name != "???" else "[unknown]", kind, file=file, line=number)
        return frame
