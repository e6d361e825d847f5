"""``perf script`` with call stacks, for any ``-F``: a header line, the frames (innermost first), a blank line.

Names and choices are those of stackcollapse-perf.pl. Values: the samples, and the sum of their periods (in units of the
event; nanoseconds for clocks). perf report and stackcollapse-perf.pl weight by the periods, which are the default if
perf printed them. Only the first event is read unless one is requested: a sum of different events is meaningless. perf
prints addresses, but not where a file was mapped, so frames have no addresses.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...base.errors import StallscopeError
from ...base.text import printable
from ...model import Labels, Profile, Sample, Stack, ValueType
from ..base.options import ReadOptions
from ..base.skipped import Skipped
from ..base.source import Source
from .frames import BAD, EMPTY, JOINT, FrameLines, Frames, Mixed, join_places, without_places
from .lines import HEX, Header, is_branch_stack, is_cut, parse_header, parse_thread, split_sample, without_address

EXPECTED = "a sample of perf script: a line 'comm pid time: period event:', then one frame a line (record with -g)"

SEPARATOR = b"\n\n"
"""Separates samples: the text can be cut after it."""

_blocks = re.compile(SEPARATOR).split
"""Twice as fast as ``bytes.split``."""

_SNIFFED = 200
_FRAME = re.compile(rb"\s*(?=[a-f]*\d)[0-9a-f]{4,16} \S.* \(\S.*\)\s*\Z")
_SHORT_FRAME = re.compile(rb"\s+(?=[a-f]*\d)[0-9a-f]{2,16}(?: \S.*)?\Z")
"""Line of a frame without ``dso``."""
_MAX_CACHED = 64 << 20
"""Limit of the text for which results are cached, in bytes."""
_MAX_LINES = 1 << 18
_MAX_LEAVES = 1 << 14
_MANY = 1 << 16
"""Number of lines after which to check whether lines repeat."""
_MAX_DIGITS = 18
_TIMED = re.compile(rb"(?:(?:cpu|task)-clock|sched:sched_stat_(?:runtime|wait|sleep|iowait|blocked))(?:[:/].*)?\Z")
"""Events whose periods are nanoseconds: kernel/events/core.c and include/trace/events/sched.h in Linux."""
_MAX_EVENTS = 100
_HEADLESS_KEY = b""
_ODD = b"\n", b"1", b""
"""Result for a header whose first word is not a thread: the sample has to be read line by line."""
_NO_LEAF = b"\n", b"", 0, 0
"""Initial entry in `_Callers`: no line begins like this."""
_COLON, _SPACE, _TAB = b": \t"
_COLUMN = 17
"""Column of the space before a function's name: perf prints a tab and a 16-column address before it."""
_OTHER, _CUT, _HEADLESS = "samples of other events", "samples cut short at the end", "stacks without a header"
_BRANCHES = "branch stacks"
_NO_LINE, _NO_STACK = "lines not understood", "headers without a stack"

_Cells = dict[int, list[int]]
"""Thread and leaf (`_Thread.base` + frame number) → [samples, sum of periods]."""

_Callers = list[Any]
"""Cached data for the text below a leaf's line: its cells, the number of lines of such a sample, and the first leaf
function found above this text (there are rarely others): the text of the leaf's line from `_COLUMN` up to the digits of
the offset, the text after these digits, their position, and the number of the leaf's frames."""


def sniff(head: bytes) -> bool:
    """Whether the first lines include a header or a frame."""
    lines = [line for line in head.splitlines()[:_SNIFFED] if line.strip() and not line.startswith(b"#")]
    headers = (parse_header(line, loose=False) for line in lines if not line[:1].isspace())
    if any(header and header.event for header in headers) or any(map(split_sample, lines)):
        return True
    return any(map(_FRAME.match, lines)) or sum(map(bool, map(_SHORT_FRAME.match, lines))) > len(lines) // 2


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
    """The options with the event to read, which is that of the first sample."""
    tally = _Tally(replace(options, inline=False), "")
    tally.add(head[: head.rfind(SEPARATOR) + len(SEPARATOR)])
    return replace(options, event=tally.event.decode(errors="surrogateescape"))


class _Names:
    """Lines and stacks of lines seen so far, for one way to tidy names."""

    def __init__(self, frames: Frames, java: bool) -> None:
        self.lines = FrameLines(frames, java=java)
        self.leaves: dict[bytes, int] = {}
        """Numbers of lines of leaves: apart from `lines`, since there are more of them, and only some occur often."""
        self.callers: dict[bytes, _Callers] = {}
        """Cached callers, by the text below the leaf's line."""

    def find_leaf(self, line: bytes, known: _Callers) -> int:
        """The number of a line that ``known`` does not have: the first leaf's function is cached in ``known``, the
        lines of other leaves in `leaves`. Raises Mixed."""
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
    """Common data of the samples with one header; ``names`` tidies its frames."""

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
        """Stand-in for the header of samples without one, which is all of them with -F ip,sym."""
        self._threads = {_HEADLESS_KEY: self._headless}
        self._cells: defaultdict[tuple[int, ...], _Cells] = defaultdict(dict)
        """Sums of samples, by the frame numbers of the leaf's callers, innermost first."""
        self._cached = 0
        self._line = 1
        # State of a sample that is read line by line: only such a sample can continue in the next chunk.
        self._thread: _Thread | None = None
        self._period = 1
        self._stack: list[int] = []
        self._first = True
        self._filtered = False
        self._cut = False
        """Whether the text so far ends inside a line."""
        self._others: set[bytes] = set()
        """Events that are not read."""
        self._flat = False
        """Whether there are samples without a stack."""
        self._placeless = False
        """Whether addresses and offsets are removed from the text, so that its lines repeat."""

    def add(self, chunk: bytes) -> None:
        """Counts the samples of ``chunk``, which continues where the last one ended."""
        if self._placeless:
            self._add(without_places(chunk))
            return
        known = self._known_lines()
        self._add(chunk)
        if known > _MANY and (self._known_lines() - known) * 2 > chunk.count(b"\n"):
            self._placeless = not (self.options.addrs or self.options.inline)

    def _known_lines(self) -> int:
        return sum(len(names.lines) for names in self._names.values())

    def _add(self, chunk: bytes) -> None:
        blocks = _blocks(join_places(chunk) if self.frames.joined else chunk)
        last = blocks.pop()
        goes_on = bool(blocks) and not self._first
        if goes_on:
            self._add_lines(blocks[0])
        self._add_blocks(blocks[goes_on:])
        if last:
            self._add_lines(last, ended=False)

    def _add_blocks(self, blocks: list[bytes]) -> None:
        """Adds whole samples. Parts that occurred in earlier samples are found by their text, without parsing."""
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
        """The number of line ends that ``text`` had in the input."""
        return text.count(b"\n") + (text.count(JOINT) if self.frames.joined else 0)

    def _is_wanted(self, event: bytes) -> bool:
        """Whether samples of ``event`` are counted; if no event was requested, only those of the first are."""
        if not self.event:
            self.event = event
        if event == self.event:
            return True
        if len(self._others) < _MAX_EVENTS:
            self._others.add(event)
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
        """Adds one block line by line: headers of other shapes, several in one block, comments, errors."""
        text = join_places(block)
        self.frames.joined = self.frames.joined or text != block
        lines = text.split(b"\n")
        if ended:
            lines.append(b"")
        else:
            self._cut = is_cut(lines)
            if not lines[-1]:
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
        if sample := split_sample(line):
            self._end()
            self._add_line(sample[0])
            self._add_line(sample[1])
            self._end()
            self._flat = True
            return True
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
        """The result."""
        if self._thread and self._stack and not self._cut:
            self._end()
        elif self._thread:
            self.skipped.add(*((_CUT,) if self._stack else (_NO_STACK, self._line)))
        event = self.event.decode(errors="surrogateescape")
        if self.options.event and self._others and not self._cells:
            events = ", ".join(sorted(printable(name.decode(errors="surrogateescape")) for name in self._others))
            cause = f"there is no sample of the event {printable(event)}"
            raise StallscopeError(cause, f"choose one of: {events}", exit_code=2)
        profile = Profile([ValueType("samples", "count")], title=f"{event} samples" if event else "perf samples")
        labels = list(self._labels)
        for number, stack, count, period in self._stacks():
            if labels[number] is None and len(labels) > 1:
                self.skipped.add(_HEADLESS, count=count)
            else:
                profile.samples.append(Sample(stack, (count, period), labels[number] or ()))
        unit = event or "events"
        if any(count != period for _, (count, period), _ in profile.samples):
            profile.default_value = "period"
            unit = "nanoseconds" if _TIMED.match(self.event) else unit
        profile.value_types.append(ValueType("period", unit))
        self.skipped.tell(profile)
        if self._flat:
            profile.comments.append("recorded without stacks (perf record -g): one function for each sample")
        return profile

    def _stacks(self) -> Iterator[tuple[int, Stack, int, int]]:
        """(number of the labels, stack, samples, period); each stack once for the same labels."""
        frames = self.frames.frames
        merged: dict[tuple[int, Stack], list[int]] = {}
        for callers, cells in self._cells.items():
            outer = [frame for number in reversed(callers) for frame in frames[number]]
            for key, (count, period) in cells.items():
                stack = (*outer, *frames[key & 0xFFFFFFFF])
                if self.frames.plain:  # different lines never give the same stack
                    yield key >> 32, stack, count, period
                    continue
                cell = merged.setdefault((key >> 32, stack), [0, 0])
                cell[0] += count
                cell[1] += period
        for (labels, stack), (count, period) in merged.items():
            yield labels, stack, count, period


def _other_shape(words: list[bytes], body: bytes, wanted: bytes) -> tuple[bytes, bytes, bytes]:
    """(thread, period, event) of a header without a period, or without anything; `_ODD` for other headers."""
    if not words and body:
        return _HEADLESS_KEY, b"1", wanted
    if len(words) == 4 and words[2][-1] == _COLON and words[3][-1] == _COLON:
        return b"%b %b" % (words[0], words[1]), b"1", words[3]
    return _ODD
