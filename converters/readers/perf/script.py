"""The text of ``perf script`` with call stacks, of any ``-F``: a header line, the frames (innermost first), a blank.

Names and choices are those of stackcollapse-perf.pl. Values: the samples, and the sum of their periods (in units of the
event). Only the first event is read unless one is asked for: a sum of different events means nothing. perf prints
addresses, but not where a file was mapped, so frames carry none.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..model import Labels, Profile, Sample, Stack, ValueType
from .options import ReadOptions
from .perf_frames import BAD, EMPTY, JOINT, FrameLines, Frames, Mixed, join_places
from .perf_lines import HEX, Header, is_branch_stack, parse_frames, parse_header, parse_thread, without_address
from .skipped import Skipped
from .source import Source

EXPECTED = "a sample of perf script: a line 'comm pid time: period event:', then one frame a line (record with -g)"

SEPARATOR = b"\n\n"
"""Between samples: the text can be cut after it."""

_blocks = re.compile(SEPARATOR).split
"""As ``bytes.split``, in half of the time."""

_SNIFFED = 200
_MAX_CACHED = 64 << 20
"""Bytes of text whose meaning is remembered."""
_MAX_LINES = 1 << 18
_MAX_LEAVES = 1 << 14
_MAX_DIGITS = 18
_HEADLESS_KEY = b""
_ODD = b"\n", b"1", b""
"""Its first word is no thread: the sample has to be read line by line."""
_NO_LEAF = b"\n", b"", 0, 0
"""In `_Callers`: no line begins so."""
_COLON, _SPACE, _TAB = b": \t"
_COLUMN = 17
"""Of the space before a function's name: perf prints a tab and the address in 16 places before it."""
_OTHER, _CUT, _HEADLESS = "samples of other events", "samples cut short at the end", "stacks without a header"
_BRANCHES = "branch stacks"
_NO_LINE, _NO_STACK = "lines not understood", "headers without a stack"

_Cells = dict[int, list[int]]
"""Thread and leaf (`_Thread.base` + frame number) → [samples, sum of periods]."""

_Callers = list[Any]
"""What is known of the text below a leaf's line: its cells, the number of lines of such a sample, and of the function
that called last from there, which mostly is the only one: what stands in a leaf's line from `_COLUMN` up to the digits
of the offset, what stands behind them, where they begin, and the number of its frames."""


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
    try:
        for chunk in source.chunks(SEPARATOR):
            tally.add(chunk)
    finally:
        tally.frames.close()
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

    def __init__(self, frames: Frames, java: bool) -> None:
        self.lines = FrameLines(frames, java=java)
        self.leaves: dict[bytes, int] = {}
        """As `lines`, for leaves: these are more, and only some of them come often."""
        self.callers: dict[bytes, _Callers] = {}
        """By the text below the leaf's line."""

    def find_leaf(self, line: bytes, known: _Callers) -> int:
        """The number of a line that is not known below ``known``: of its first leaf, the function is remembered there,
        the lines of others in `leaves`. Raises Mixed."""
        name, _, tail = line.rpartition(b"+0x")
        module = tail.partition(b" (")[2]
        function = name[_COLUMN + 1 :]
        number = self.lines.functions.get((function, module))
        if not number or name[0] != _TAB or name[_COLUMN] != _SPACE or without_address(line) != (function, module):
            number = self.lines[line]
        elif known[2] is _NO_LEAF[0]:
            known[2:] = name[_COLUMN:] + b"+0x", b" (" + module, len(name) + 3, number
            return number
        if len(self.leaves) >= _MAX_LEAVES:
            self.leaves.clear()
        self.leaves[line] = number
        return number


class _Thread:
    """What samples of one header have in common; its frames are tidied by ``names``."""

    __slots__ = ("base", "names")

    def __init__(self, number: int, names: _Names) -> None:
        self.base = number << 32
        self.names = names


class _Tally:
    """Samples by thread and stack."""

    def __init__(self, options: ReadOptions, name: str) -> None:
        self.options = options
        self.skipped = Skipped(name, EXPECTED)
        self.event = options.event.encode(errors="surrogateescape")
        self.frames = Frames(options)
        self._names = {java: _Names(self.frames, java) for java in (False, True)}
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
        blocks = _blocks(join_places(chunk) if self.frames.joined else chunk)
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
        joined = self.frames.joined
        for block in blocks:
            header, _, body = block.partition(b"\n")
            words = header.rsplit(None, 3)
            if len(words) == 4:
                key, time, period, event = words
                if time[-1] != _COLON or event[-1] != _COLON or not period.isdigit():
                    key, period, event = _other_shape(words, body, wanted)
            else:
                key, period, event = _other_shape(words, body, wanted)
            thread = threads.get(key) or self._find_thread(key, header)
            if thread is None or len(period) > _MAX_DIGITS:
                self._add_lines(block)
                continue
            if event != wanted:
                if not self._is_wanted(event[:-1]):
                    self._line += self._breaks(block) + 2
                    continue
                wanted = event
            leaf, _, text = body.partition(b"\n")
            names = thread.names
            try:
                known = names.callers.get(text) or self._find_callers(names, text)
                cells, lines, name, module, at, number = known
                if not (
                    leaf.startswith(name, _COLUMN)
                    and leaf.endswith(module)
                    and leaf[0] == _TAB
                    and leaf[1:_COLUMN].lstrip().isalnum()
                    and (offset := leaf[at : -len(module)])
                    and not offset.translate(None, HEX)
                ):
                    number = names.leaves.get(leaf) or names.find_leaf(leaf, known)
            except Mixed:
                self._add_lines(block)
                continue
            number += thread.base
            self._line += (lines if body else 2) + (leaf.count(JOINT) if joined else 0)
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

    def _find_callers(self, names: _Names, text: bytes) -> _Callers:
        numbers = tuple(map(names.lines.__getitem__, text.split(b"\n"))) if text else ()
        if self._cached > _MAX_CACHED:
            for each in self._names.values():
                each.callers.clear()
            self._cached = 0
        self._cached += len(text) + 100
        known = names.callers[text] = [self._cells[numbers], self._breaks(text) + (4 if text else 3), *_NO_LEAF]
        return known

    def _breaks(self, text: bytes) -> int:
        """The line ends in ``text``, as the input had it."""
        return text.count(b"\n") + (text.count(JOINT) if self.frames.joined else 0)

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
        text = join_places(block)
        self.frames.joined = self.frames.joined or text != block
        lines = text.split(b"\n")
        if ended:
            lines.append(b"")
        elif not lines[-1]:
            lines.pop()
        for line in lines:
            line = line.rstrip(b"\r")
            if not line:
                self._end()
            elif (self._stack or self._filtered) and is_branch_stack(line):
                self.skipped.add(_BRANCHES)
                self._end()  # perf prints no blank line after it
            elif line[:1] != b"#" and not self._add_line(line):
                self.skipped.add(_NO_LINE, self._line)
            self._line += 1 + self._breaks(line)

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
        if number == BAD:
            return False
        if not self._filtered:
            if not self._thread:
                self._thread, self._period = self._headless, 1
            self._stack.append(number)
        return True

    def _end(self) -> None:
        if self._thread:
            leaf, *callers = self._stack or [EMPTY]
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
        labels = list(self._labels)
        for number, stack, count, period in self._stacks():
            if labels[number] is None and len(labels) > 1:
                self.skipped.add(_HEADLESS, count=count)
            else:
                profile.samples.append(Sample(stack, (count, period), labels[number] or ()))
        self.skipped.tell(profile)
        return profile

    def _stacks(self) -> Iterator[tuple[int, Stack, int, int]]:
        """Number of the labels, stack, samples, period; each stack once for the same labels."""
        frames = self.frames.frames
        merged: dict[tuple[int, Stack], list[int]] = {}
        for callers, cells in self._cells.items():
            outer = [frame for number in reversed(callers) for frame in frames[number]]
            for key, (count, period) in cells.items():
                stack = (*outer, *frames[key & 0xFFFFFFFF])
                if self.frames.plain:  # no other lines make the same stack
                    yield key >> 32, stack, count, period
                    continue
                cell = merged.setdefault((key >> 32, stack), [0, 0])
                cell[0] += count
                cell[1] += period
        for (labels, stack), (count, period) in merged.items():
            yield labels, stack, count, period


def _other_shape(words: list[bytes], body: bytes, wanted: bytes) -> tuple[bytes, bytes, bytes]:
    """Thread, period and event for a header without a period, or none at all; `_ODD` for the rest."""
    if not words and body:
        return _HEADLESS_KEY, b"1", wanted
    if len(words) == 4 and words[2][-1] == _COLON and words[3][-1] == _COLON:
        return b"%b %b" % (words[0], words[1]), b"1", words[3]
    return _ODD
