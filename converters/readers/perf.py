"""The text of ``perf script`` with call stacks, of any ``-F``: a header line, the frames (innermost first), a blank.

Names and choices are those of stackcollapse-perf.pl. Values: the samples, and the sum of their periods (in units of the
event). Only the first event is read unless one is asked for: a sum of different events means nothing. perf prints
addresses, but not where a file was mapped, so frames carry none.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import closing
from dataclasses import replace

from ..model import Frame, Labels, Profile, Sample, Stack, ValueType
from .inline import Inliner
from .options import ReadOptions
from .perf_lines import HEX, Header, inlined_frames, parse_frames, parse_header, parse_thread, without_address
from .skipped import Skipped
from .source import Source

EXPECTED = "a sample of perf script: a line 'comm pid time: period event:', then one frame a line (record with -g)"

SEPARATOR = b"\n\n"
"""Between samples: the text can be cut after it."""

_SNIFFED = 200
_MAX_CACHED = 64 << 20
"""Bytes of text whose meaning is remembered."""
_MAX_LINES = 1 << 18
_MAX_DIGITS = 18
_HEADLESS_KEY = b""
_ODD = [b"\n", b"", b"", b""]
"""Its first word is no thread: the sample has to be read line by line."""
_BAD, _EMPTY = 0, 1
_COLON, _SPACE, _TAB = b": \t"
_COLUMN = 18
"""Of a function's name: perf prints a tab, the address in 16 places, a space."""
_OTHER, _CUT, _HEADLESS = "samples of other events", "samples cut short at the end", "stacks without a header"
_NO_LINE, _NO_STACK = "lines not understood", "headers without a stack"

_Cells = dict[int, list[int]]
"""Thread and leaf (`_Thread.base` + frame number) → [samples, sum of periods]."""


def sniff(head: bytes) -> bool:
    """Whether there is a header or a frame among the first lines."""
    lines = [line for line in head.splitlines()[:_SNIFFED] if line.strip() and not line.startswith(b"#")]
    if any(not line[:1].isspace() and (header := parse_header(line, loose=False)) and header.event for line in lines):
        return True
    return any(
        line[:1].isspace()
        and not line.split(None, 1)[0].translate(None, b"0123456789abcdef")
        and parse_frames(line, addrs=False, java=False)
        for line in lines
    )


def read(source: Source, options: ReadOptions) -> Profile:
    """One sample per distinct stack and thread (process, without options.tid). Raises StallscopeError."""
    tally = _Tally(options, source.name)
    with closing(tally.inliner):
        for chunk in source.chunks(SEPARATOR):
            tally.add(chunk)
    profile = tally.profile()
    tally.skipped.check(source, bool(profile.samples), EXPECTED)
    return profile


def settled(head: bytes, options: ReadOptions) -> ReadOptions:
    """With the event that is read when the input begins so: that of the first sample."""
    tally = _Tally(replace(options, inline=False), "")
    tally.add(head[: head.rfind(SEPARATOR) + len(SEPARATOR)])
    return replace(options, event=tally.event.decode(errors="surrogateescape"))


class _Names:
    """Lines and stacks of lines that were seen, for one way to tidy names."""

    def __init__(self, tally: _Tally, java: bool) -> None:
        self.lines = _Lines(tally, java)
        self.callers: dict[bytes, tuple[_Cells, int]] = {}
        """The text below the leaf's line → its cells, and how many lines such a sample has."""


class _Thread:
    """What samples of one header have in common; its frames are tidied by ``names``."""

    __slots__ = ("base", "names")

    def __init__(self, number: int, names: _Names) -> None:
        self.base = number << 32
        self.names = names


class _Mixed(Exception):
    """A line among the frames that is none: the sample has to be read line by line."""


class _Tally:
    """Samples by thread and stack."""

    def __init__(self, options: ReadOptions, name: str) -> None:
        self.options = options
        self.skipped = Skipped(name, EXPECTED)
        self.event = options.event.encode(errors="surrogateescape")
        self.frames: list[tuple[Frame, ...]] = [(), ()]
        self.frame_numbers: dict[tuple[Frame, ...], int] = {}
        self.inliner = Inliner()
        self._names = {java: _Names(self, java) for java in (False, True)}
        self._labels: dict[Labels | None, int] = {None: 0}
        self._headless = _Thread(0, self._names[False])
        """For samples without a header: all are so with -F ip,sym."""
        self._threads = {_HEADLESS_KEY: self._headless}
        self._cells: defaultdict[tuple[int, ...], _Cells] = defaultdict(dict)
        """By the frame numbers of the leaf's callers, innermost first."""
        self._cached = 0
        self._line = 1
        # A sample that is read line by line: only then, it can go on in the next chunk.
        self._thread: _Thread | None = None
        self._period = 1
        self._stack: list[int] = []
        self._first = True
        self._filtered = False

    def add(self, chunk: bytes) -> None:
        """Counts the samples of ``chunk``, which begins where the last one ended."""
        blocks = chunk.split(b"\n\n")
        last = blocks.pop()
        goes_on = bool(blocks) and not self._first
        if goes_on:
            self._add_lines(blocks[0])
        self._add_blocks(blocks[goes_on:])
        if last:
            self._add_lines(last, ended=False)

    def _add_blocks(self, blocks: list[bytes]) -> None:
        """Whole samples. What they have in common with an earlier one is found by its text, without parsing it."""
        threads = self._threads
        wanted = self.event + b":"
        for block in blocks:
            header, _, body = block.partition(b"\n")
            words = header.rsplit(None, 3)
            if len(words) != 4 or words[1][-1] != _COLON or words[3][-1] != _COLON or not words[2].isdigit():
                words = _other_shape(words, body, wanted)
            thread = threads.get(words[0]) or self._find_thread(words[0], header)
            period, event = words[2:]
            if thread is None or len(period) > _MAX_DIGITS:
                self._add_lines(block)
                continue
            if event != wanted:
                if not self._is_wanted(event[:-1]):
                    self._line += block.count(b"\n") + 2
                    continue
                wanted = event
            leaf, _, text = body.partition(b"\n")
            names = thread.names
            try:
                cells, lines = names.callers.get(text) or self._find_callers(names, text)
                number = thread.base + names.lines.leaf(leaf)
            except _Mixed:
                self._add_lines(block)
                continue
            self._line += lines if body else 2
            cell = cells.get(number)
            if cell is None:
                cells[number] = [1, int(period) or 1]
            else:
                cell[0] += 1
                cell[1] += int(period) or 1

    def _find_thread(self, key: bytes, header: bytes) -> _Thread | None:
        if header[:1].isspace() or header[:1] == b"#" or not (parsed := parse_thread(key)):
            return None
        if len(self._threads) >= _MAX_LINES:
            self._threads = {_HEADLESS_KEY: self._headless}
        thread = self._threads[key] = self._make_thread(parsed)
        return thread

    def _find_callers(self, names: _Names, text: bytes) -> tuple[_Cells, int]:
        numbers = tuple(map(names.lines.__getitem__, text.split(b"\n"))) if text else ()
        if self._cached > _MAX_CACHED:
            for each in self._names.values():
                each.callers.clear()
            self._cached = 0
        self._cached += len(text) + 100
        known = names.callers[text] = self._cells[numbers], len(numbers) + 3
        return known

    def _is_wanted(self, event: bytes) -> bool:
        """Whether samples of ``event`` are counted; the first event is the wanted one if none was asked for."""
        if not self.event:
            self.event = event
        if event == self.event:
            return True
        self.skipped.add(_OTHER)
        return False

    def _make_thread(self, header: Header) -> _Thread:
        labels: dict[str, str | int] = {}
        comm, options = header.comm, self.options
        if options.pid or options.tid:
            if header.pid is not None:
                labels["pid"] = header.pid
            elif comm and header.tid is not None:
                comm += "-?"  # as stackcollapse-perf.pl
        if options.tid and header.tid is not None:
            labels["tid"] = header.tid
            labels["thread"] = comm
        if comm:
            labels["process"] = comm
        number = self._labels.setdefault(tuple(sorted(labels.items())), len(self._labels))
        return _Thread(number, self._names[comm.startswith("java")])

    def _add_lines(self, block: bytes, *, ended: bool = True) -> None:
        """One block, line by line: headers of other shapes, several in one block, comments, errors."""
        lines = block.split(b"\n")
        if ended:
            lines.append(b"")
        elif not lines[-1]:
            lines.pop()
        for line in lines:
            line = line.rstrip(b"\r")
            if not line:
                self._end()
            elif line[:1] != b"#" and not self._add_line(line):
                self.skipped.add(_NO_LINE, self._line)
            self._line += 1

    def _add_line(self, line: bytes) -> bool:
        """False for a line that is neither a header nor a frame."""
        if header := parse_header(line, loose=self._first):
            self._first = False
            if self._thread and not self._stack:
                self.skipped.add(_NO_STACK, self._line)
            wanted = not header.event or self._is_wanted(header.event)
            self._filtered = not wanted
            if wanted:
                self._thread, self._period = self._make_thread(header), header.period
            return True
        self._first = False
        number = (self._thread or self._headless).names.lines.parse(line)
        if number == _BAD:
            return False
        if not self._filtered:
            if not self._thread:
                self._thread, self._period = self._headless, 1
            self._stack.append(number)
        return True

    def _end(self) -> None:
        if self._thread:
            leaf, *callers = self._stack or [_EMPTY]
            cell = self._cells[tuple(callers)].setdefault(self._thread.base + leaf, [0, 0])
            cell[0] += 1
            cell[1] += self._period
        self._thread, self._stack, self._first, self._filtered = None, [], True, False

    def profile(self) -> Profile:
        """What was counted."""
        if self._thread:
            self.skipped.add(*((_CUT,) if self._stack else (_NO_STACK, self._line)))
        event = self.event.decode(errors="surrogateescape")
        types = [ValueType("samples", "count"), ValueType("period", event or "events")]
        profile = Profile(types, title=f"{event} samples" if event else "perf samples")
        all_labels = list(self._labels)
        merged: dict[tuple[int, Stack], list[int]] = {}
        for callers, cells in self._cells.items():
            outer = [frame for number in reversed(callers) for frame in self.frames[number]]
            for key, (count, period) in cells.items():
                if all_labels[key >> 32] is None and len(all_labels) > 1:
                    self.skipped.add(_HEADLESS, count=count)
                    continue
                stack = (*outer, *self.frames[key & 0xFFFFFFFF])
                cell = merged.setdefault((key >> 32, stack), [0, 0])
                cell[0] += count
                cell[1] += period
        for (number, stack), (count, period) in merged.items():
            profile.samples.append(Sample(stack, (count, period), all_labels[number] or ()))
        self.skipped.tell(profile)
        return profile


def _other_shape(words: list[bytes], body: bytes, wanted: bytes) -> list[bytes]:
    """What takes the place of ``words`` for a header without a period, or none at all; `_ODD` for the rest."""
    if not words and body:
        return [_HEADLESS_KEY, b"", b"1", wanted]
    if len(words) == 4 and words[2][-1] == _COLON and words[3][-1] == _COLON:
        return [b"%b %b" % (words[0], words[1]), words[2], b"1", words[3]]
    return _ODD


class _Lines(dict[bytes, int]):
    """Text of a line → number of its frames in `_Tally.frames`. Raises _Mixed for a line that is no frame."""

    def __init__(self, tally: _Tally, java: bool) -> None:
        super().__init__()
        self._tally = tally
        self._java = java
        self.functions: dict[tuple[bytes, bytes], int] = {}
        """Function and module → number: there are far fewer of them than addresses."""

    def __missing__(self, line: bytes) -> int:
        if not line:
            number = _EMPTY
        elif not line[:1].isspace() and (line[:1] == b"#" or parse_thread(line)):
            raise _Mixed
        else:
            number = self.parse(line)
            if number == _BAD:
                raise _Mixed
        if len(self) >= _MAX_LINES:
            self.clear()
        self[line] = number
        return number

    def leaf(self, line: bytes) -> int:
        """As ``[line]``. Addresses of leaves vary too much to remember all lines: what varies is cut off by column."""
        place, _, tail = line.rpartition(b"+0x")
        offset, _, module = tail.partition(b" (")
        number = self.functions.get((place[_COLUMN:], module))
        if number and place[0] == _TAB and place[_COLUMN - 1] == _SPACE:
            address = place[1:_COLUMN]
            if address.strip().isalnum() and not offset.translate(None, HEX):
                return number
        return self[line]

    def parse(self, line: bytes) -> int:
        """The number for a line that is not remembered; _BAD for one that is no frame."""
        tally = self._tally
        options = tally.options
        key = None if options.addrs or options.inline else without_address(line)
        if key and (known := self.functions.get(key)) is not None:
            return known
        line = line.rstrip(b"\r")
        frames = inlined_frames(line, tally.inliner, context=options.context) if options.inline else None
        frames = frames or parse_frames(line, addrs=options.addrs, java=self._java)
        if frames is None:
            return _BAD
        if not frames:
            return _EMPTY
        number = tally.frame_numbers.get(frames)
        if number is None:
            number = tally.frame_numbers[frames] = len(tally.frames)
            tally.frames.append(frames)
        if key:
            self.functions[key] = number
        return number
