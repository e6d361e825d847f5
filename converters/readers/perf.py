"""The text of ``perf script`` with call stacks, of any ``-F``: a header line, the frames (innermost first), a blank.

Names and choices are those of stackcollapse-perf.pl. Values: the samples, and the sum of their periods (in units of the
event). Only the first event is read unless one is asked for: a sum of different events means nothing. perf prints
addresses, but not where a file was mapped, so frames carry none.
"""

from __future__ import annotations

from collections import defaultdict

from ..model import Frame, Labels, Profile, Sample, Stack, ValueType
from .options import ReadOptions
from .perf_lines import Header, parse_frames, parse_header, parse_thread, without_address
from .skipped import Skipped
from .source import Source

EXPECTED = "a sample of perf script: a line 'comm pid time: period event:', then one frame a line"

_SNIFFED = 200
_MAX_CACHED = 64 << 20
"""Bytes of text whose meaning is remembered."""
_MAX_LINES = 1 << 18
_BAD, _EMPTY = 0, 1
_OTHER, _CUT, _HEADLESS = "samples of other events", "samples cut short at the end", "frames without a header"
_NO_LINE = "lines not understood"

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
    for chunk in source.chunks(b"\n\n"):
        tally.add(chunk)
    profile = tally.profile()
    tally.skipped.check(source, bool(profile.samples), EXPECTED)
    return profile


class _Names:
    """Lines and stacks of lines that were seen, for one way to tidy names."""

    def __init__(self, tally: _Tally, java: bool) -> None:
        self.lines = _Lines(tally, java)
        self.callers: dict[bytes, _Cells] = {}
        """The text below the leaf's line → its cells."""


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
        self._names = {java: _Names(self, java) for java in (False, True)}
        self._labels: dict[Labels, int] = {}
        self._threads: dict[bytes, _Thread] = {}
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
            self._add_lines(blocks, 0)
        self._add_blocks(blocks, int(goes_on))
        if last:
            blocks.append(last)
            self._add_lines(blocks, len(blocks) - 1, ended=False)
        self._line += chunk.count(b"\n")

    def _add_blocks(self, blocks: list[bytes], start: int) -> None:
        """Whole samples. What they have in common with an earlier one is found by its text, without parsing it."""
        threads = self._threads
        wanted = self.event + b":"
        for i in range(start, len(blocks)):
            header, _, body = blocks[i].partition(b"\n")
            words = header.rsplit(None, 3)
            if len(words) == 4 and words[1][-1:] == b":" and words[2].isdigit() and words[3][-1:] == b":":
                key, _, period, event = words
            elif len(words) == 4 and words[2][-1:] == b":" and words[3][-1:] == b":":
                key, period, event = b"%b %b" % (words[0], words[1]), b"1", words[3]
            else:
                self._add_lines(blocks, i)
                continue
            thread = threads.get(key) or self._find_thread(key, header)
            if thread is None or len(period) > 18 or len(event) < 2:
                self._add_lines(blocks, i)
                continue
            if event != wanted:
                if not self._is_wanted(event[:-1]):
                    continue
                wanted = event
            leaf, _, text = body.partition(b"\n")
            names = thread.names
            try:
                cells = names.callers.get(text)
                if cells is None:
                    cells = self._find_callers(names, text)
                number = thread.base + names.lines[leaf]
            except _Mixed:
                self._add_lines(blocks, i)
                continue
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
            self._threads.clear()
        thread = self._threads[key] = self._make_thread(parsed)
        return thread

    def _find_callers(self, names: _Names, text: bytes) -> _Cells:
        lines = names.lines
        numbers = tuple([lines[line] for line in text.split(b"\n")]) if text else ()
        if self._cached > _MAX_CACHED:
            for each in self._names.values():
                each.callers.clear()
            self._cached = 0
        self._cached += len(text) + 100
        cells = names.callers[text] = self._cells[numbers]
        return cells

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

    def _add_lines(self, blocks: list[bytes], index: int, *, ended: bool = True) -> None:
        """One block, line by line: headers of other shapes, several in one block, comments, errors."""
        lines = blocks[index].split(b"\n")
        if ended:
            lines.append(b"")
        elif not lines[-1]:
            lines.pop()
        place = -1
        for i, line in enumerate(lines):
            line = line.rstrip(b"\r")
            if not line:
                self._end()
            elif line[:1] != b"#" and not self._add_line(line):
                if place < 0:
                    place = self._line + sum(block.count(b"\n") + 2 for block in blocks[:index])
                self.skipped.add(_NO_LINE, place + i)

    def _add_line(self, line: bytes) -> bool:
        """False for a line that is neither a header nor a frame."""
        if header := parse_header(line, loose=self._first):
            self._first = False
            wanted = not header.event or self._is_wanted(header.event)
            self._filtered = not wanted
            if wanted:
                self._thread, self._period = self._make_thread(header), header.period
            return True
        self._first = False
        lines = (self._thread.names if self._thread else self._names[False]).lines
        number = lines.parse(line)
        if number == _BAD:
            return False
        if self._thread:
            self._stack.append(number)
        elif not self._filtered:
            self.skipped.add(_HEADLESS)
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
        if self._thread and self._stack:
            self.skipped.add(_CUT)
        event = self.event.decode(errors="surrogateescape")
        types = [ValueType("samples", "count"), ValueType("period", event or "events")]
        profile = Profile(types, title=f"{event} samples" if event else "perf samples")
        all_labels = list(self._labels)
        merged: dict[tuple[int, Stack], list[int]] = {}
        for callers, cells in self._cells.items():
            outer = [frame for number in reversed(callers) for frame in self.frames[number]]
            for key, (count, period) in cells.items():
                stack = (*outer, *self.frames[key & 0xFFFFFFFF])
                cell = merged.setdefault((key >> 32, stack), [0, 0])
                cell[0] += count
                cell[1] += period
        for (number, stack), (count, period) in merged.items():
            profile.samples.append(Sample(stack, (count, period), all_labels[number]))
        self.skipped.tell(profile)
        return profile


class _Lines(dict[bytes, int]):
    """Text of a line → number of its frames in `_Tally.frames`. Raises _Mixed for a line that is no frame."""

    def __init__(self, tally: _Tally, java: bool) -> None:
        super().__init__()
        self._tally = tally
        self._java = java
        self._functions: dict[bytes, int] = {}
        """Line without the address → number: there are far fewer of them."""

    def __missing__(self, line: bytes) -> int:
        if not line:
            number = _EMPTY
        elif line[:1] == b"#" or (not line[:1].isspace() and parse_thread(line)):
            raise _Mixed
        else:
            number = self.parse(line)
            if number == _BAD:
                raise _Mixed
        if len(self) >= _MAX_LINES:
            self.clear()
        self[line] = number
        return number

    def parse(self, line: bytes) -> int:
        """The number for a line that is not remembered; _BAD for one that is no frame."""
        tally = self._tally
        key = b"" if tally.options.addrs else without_address(line)
        if key and (known := self._functions.get(key)) is not None:
            return known
        frames = parse_frames(line.rstrip(b"\r"), addrs=tally.options.addrs, java=self._java)
        if frames is None:
            return _BAD
        if not frames:
            return _EMPTY
        number = tally.frame_numbers.get(frames)
        if number is None:
            number = tally.frame_numbers[frames] = len(tally.frames)
            tally.frames.append(frames)
        if key:
            self._functions[key] = number
        return number
