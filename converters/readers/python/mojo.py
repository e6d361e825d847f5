"""MOJO, the binary format of austin (``austin --binary``; the only one that version 4 writes): versions 1 to 4.

A file is a stream of events: a number, then varints and strings that end in NUL. Stacks refer to frames, and frames to
strings, that were defined earlier for the same process. Tasks of asyncio (version 4) are left out: the time of their
threads includes theirs.
Source: "The MOJO file format" in austin's documentation, its src/mojo.h, and austin-python's mojo.py.
"""

from __future__ import annotations

from ...base.errors import StallscopeError
from ...model import Frame, Labels, Profile, Stack
from ...model.losses import frames_without
from ..base.options import ReadOptions
from ..base.skipped import Skipped
from ..base.source import Source
from .austin import CELLS, MODES, Cells, add_full, add_one, frame_of, profile_of, thread_labels

EXPECTED = "an event of the MOJO format, versions 1 to 4"

_MAGIC = b"MOJ"
_METADATA, _STACK, _FRAME, _INVALID, _FRAME_REF, _KERNEL, _GC, _IDLE, _TIME, _MEMORY, _STRING, _STRING_REF = range(
    1, 13
)
_REPEAT, _TASK_STACK, _TASK_WAITER, _TASK_RUNNING = range(13, 17)
_MAX_VARINT = 10
_MAX_STRING = 1 << 16
_MAX_STACK = 10_000
_MAX_METADATA = 100
_UNKNOWN_STRING = 1
_CHUNK = 1 << 20
_HEADER = 4
_CUT, _NO_FRAME = "events cut short at the end", frames_without("a definition")


def sniff(head: bytes) -> bool:
    """Whether the input begins with the magic bytes and a known version."""
    return head.startswith(_MAGIC) and head[3:4] in (b"\1", b"\2", b"\3", b"\4")


def read(source: Source, _: ReadOptions) -> Profile:
    """One sample per distinct stack and thread. Raises StallscopeError for an invalid event."""
    reader = _Reader(source)
    reader.run()
    return reader.profile()


class _End(Exception):
    """The event extends past the available bytes."""


class _Reader:
    """Reads events; a sample ends where the next one begins."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._skipped = Skipped(source.name, EXPECTED)
        self._data = b""
        self._at = 0
        self._before = 0
        """Number of bytes before ``_data``."""
        self._version = 0
        self._metadata: dict[str, str] = {}
        self._cells: Cells = {}
        self._strings: dict[tuple[int, int], str] = {}
        self._frames: dict[tuple[int, int], Frame] = {}
        self._last: dict[tuple[int, str], list[Frame]] = {}
        """The previous stack of each thread, for events that repeat it."""
        self._labels: dict[tuple[int, int, str], Labels] = {}
        self._thread: tuple[int, int, str] | None = None
        self._stack: list[Frame] = []
        self._task_frames = 0
        self._idle = False
        self._time: int | None = None
        self._memory: int | None = None

    def run(self) -> None:
        """Reads the whole stream."""
        while more := self._source.read(_CHUNK):
            self._before += self._at
            self._data = self._data[self._at :] + more
            self._at = 0
            if not self._version:
                if len(self._data) < _HEADER and _MAGIC.startswith(self._data[:3]):
                    continue
                self._begin()
            begun = self._events()
            if len(self._data) - begun > 8 * _MAX_STRING:
                self._fail()
            self._at = begun
        if not self._version:
            self._fail()
        if self._at < len(self._data):
            self._skipped.add(_CUT)
        self._end_sample()

    def profile(self) -> Profile:
        """The result."""
        mode = self._metadata.get("mode", "wall")
        profile = profile_of(self._cells, mode if mode in MODES else "wall", self._metadata)
        self._skipped.tell(profile)
        return profile

    def _begin(self) -> None:
        if not sniff(self._data):
            self._fail()
        self._version = self._data[3]
        self._at = _HEADER

    def _events(self) -> int:
        """Returns where the first incomplete event begins."""
        at = self._at
        try:
            while True:
                at = self._at
                self._event()
        except (_End, IndexError):
            return at

    def _event(self) -> None:
        event = self._data[self._at]
        self._at += 1
        if event == _FRAME_REF:
            self._add(self._frames.get((self._pid(), self._number())))
        elif event == _STACK:
            self._begin_sample()
        elif event == _TIME:
            self._time = self._number()
        elif event == _MEMORY:
            self._memory = self._number()
        elif event in (_FRAME, _STRING, _STRING_REF, _METADATA):
            self._define(event)
        elif event == _IDLE:
            self._idle = True
        else:
            self._rare_event(event)

    def _rare_event(self, event: int) -> None:
        if event in (_INVALID, _GC):
            self._add(frame_of("", "GC" if event == _GC else "INVALID", 0))
        elif event == _KERNEL:
            self._add(frame_of("kernel", self._text(), 0))
        elif event == _REPEAT:
            self._repeat()
        elif event == _TASK_STACK:
            _, _, self._task_frames = self._number(), self._number(), self._number()
        elif event == _TASK_WAITER:
            self._number(), self._number()
        elif event == _TASK_RUNNING:
            self._number()
        else:
            self._at -= 1
            self._fail()

    def _define(self, event: int) -> None:
        if event == _METADATA:
            name, value = self._text(), self._text()
            if len(self._metadata) < _MAX_METADATA:
                self._metadata[name] = value
        elif event == _STRING:
            key, text = self._number(), self._text()
            self._strings[self._pid(), key] = text
        elif event == _STRING_REF:
            self._number()
        else:
            key, file, function, line = self._number(), self._number(), self._number(), self._number()
            if self._version > 1:  # the line's end, and the columns
                self._number(), self._number(), self._number()
            self._frames[self._pid(), key] = frame_of(self._string(file), self._string(function), max(line, 0))

    def _string(self, key: int) -> str:
        return "" if key == _UNKNOWN_STRING else self._strings.get((self._pid(), key), "")

    def _begin_sample(self) -> None:
        pid = self._number()
        interpreter = self._number() if self._version > 2 else 0
        thread = self._text()
        self._end_sample()
        self._thread = pid, interpreter, thread

    def _add(self, frame: Frame | None) -> None:
        if frame is None:
            self._skipped.add(_NO_FRAME)
            frame = frame_of("", "INVALID", 0)
        if self._task_frames > 0:
            self._task_frames -= 1
        elif len(self._stack) < _MAX_STACK:
            self._stack.append(frame)

    def _repeat(self) -> None:
        """Puts the thread's previous stack, without the native frames at its end, outside of the sample's frames."""
        if self._thread:
            before = list(self._last.get((self._thread[0], self._thread[2]), ()))
            while before and before[-1].kind != "python":
                before.pop()
            self._stack = (before + self._stack)[:_MAX_STACK]

    def _end_sample(self) -> None:
        if self._thread and (self._time is not None or self._memory is not None):
            pid, interpreter, thread = self._thread
            labels = self._labels.get(self._thread)
            if labels is None:
                tid = str(int(thread, 16)) if _is_hex(thread) else thread
                pairs = {"pid": pid, **thread_labels(tid, interpreter)}
                labels = self._labels[self._thread] = tuple(sorted(pairs.items()))
            stack: Stack = tuple(self._stack)
            cell = self._cells.setdefault((stack, labels), [0] * CELLS)
            if self._metadata.get("mode") == "full":
                add_full(cell, self._time or 0, self._idle, self._memory or 0)
            else:
                add_one(cell, (self._time if self._time is not None else self._memory) or 0)
            self._last[pid, thread] = self._stack
        self._thread = None
        self._stack, self._idle, self._time, self._memory, self._task_frames = [], False, None, None, 0

    def _pid(self) -> int:
        return self._thread[0] if self._thread else 0

    def _number(self) -> int:
        """A varint: 6 bits and a sign in the first byte, 7 in each of the others, the lowest first."""
        data, at = self._data, self._at
        byte = data[at]
        at += 1
        sign, value, shift = byte & 0x40, byte & 0x3F, 6
        while byte & 0x80:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if at - self._at > _MAX_VARINT:
                self._fail()
        self._at = at
        return -value if sign else value

    def _text(self) -> str:
        end = self._data.find(b"\0", self._at, self._at + _MAX_STRING)
        if end < 0:
            if len(self._data) - self._at >= _MAX_STRING:
                self._fail()
            raise _End
        text = self._data[self._at : end]
        self._at = end + 1
        return text.decode(errors="surrogateescape")

    def _fail(self) -> None:
        raise StallscopeError(
            f"{self._source.name}, byte {self._before + self._at}: expected {EXPECTED}",
            "record it again, or without --binary",
        )


def _is_hex(text: str) -> bool:
    return 0 < len(text) <= 15 and text.isascii() and text.isalnum() and not text.strip("0123456789abcdefABCDEF")
