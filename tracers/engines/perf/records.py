"""The text of ``perf script``, as it comes, in records: samples with stacks, switches, ends of threads, losses.

Names of symbols are in it as they are, ends of lines included. So a line begins a record only if that record is one
that went to perf script (`passed`); what follows another line that looks like it is nobody's.

The formats are those of tools/perf/builtin-script.c of Linux: print_sample_start(), perf_event__fprintf_switch(),
perf_event__fprintf_task() and process_lost_event(). Frames, and the fields of sched_switch, are read by the reader of
perf's text (`converters.readers.perf`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ....converters.model import Frame, Stack
from ....converters.readers.perf.lines import parse_frames
from ....converters.readers.perf.sched_events import parse as parse_sched
from ..named_rows import OTHER_STACKS
from . import layouts
from .names import ANONYMOUS as NO_FILE
from .names import comm as name_of

SAMPLE, SWITCH, IN, OUT, PREEMPTED, FORK, EXEC, EXIT, DROPPED, BAD, FORGED = range(11)
"""Kinds of records: a sample of a clock or counter, a sample of a switch, switched in, out because it waits, out though
it could go on, begun, another program, ended, lost by the kernel, a line that is not understood, one that looks like a
record of perf and is none, or follows one."""

_HEADER = re.compile(rb"(.*) (-?\d{1,10})/(-?\d{1,10})\s+(\d{1,12})\.(\d{9}):\s+(.*)\Z", re.DOTALL)
"""Greedy: a name of 15 bytes has no room for the ids and the time."""
_LONGEST_NAME = 15
_SWITCHED = re.compile(
    rb"(?:prev_comm=.{0,15} prev_pid=(\d{1,10}) prev_prio=-?\d{1,10} prev_state=(\S{1,9}) ==> "
    rb"next_comm=.{0,15} next_pid=\d{1,10} next_prio=-?\d{1,10}|"
    rb".{0,15}:(\d{1,10}) \[-?\d{1,10}\] (\S{1,9}) ==> .{0,15}:\d{1,10} \[-?\d{1,10}\])\s*",
    re.DOTALL,
)
"""All of a switch, without or with perf's plugin for it. The names are printed as they are, ends of lines included."""
_PLAIN = (
    b"x %b/%b 1.000000000: 1 sched:sched_switch: prev_comm=x prev_pid=%b prev_prio=1 prev_state=%b ==> next_comm=x \
next_pid=1 next_prio=1"
)
_LONGEST_SWITCH = 512
"""Bytes."""
_LOST = re.compile(rb"PERF_RECORD_LOST(?:_SAMPLES)? lost (\d{1,18})")
_IDS = re.compile(rb"\((\d{1,10}):(\d{1,10})\)")
_PERIOD = re.compile(rb"(\d{1,18})\s+(\S+):\s*(.*)\Z", re.DOTALL)
_NO_MAP = b" (%b)" % NO_FILE
ANONYMOUS = "[anon]"
_NOT_NAMED = Frame(ANONYMOUS, "native")
_SWITCHES = (b"context-switches", b"sched:sched_switch")
_UNUSED = -1
_RECORDS = {
    b"PERF_RECORD_SWITCH IN": (IN, layouts.SWITCH),
    b"PERF_RECORD_SWITCH OUT preempt": (PREEMPTED, layouts.SWITCH),
    b"PERF_RECORD_SWITCH OUT": (OUT, layouts.SWITCH),
    b"PERF_RECORD_FORK": (FORK, layouts.FORK),
    b"PERF_RECORD_COMM exec": (EXEC, layouts.COMM),
    b"PERF_RECORD_COMM": (_UNUSED, layouts.COMM),
    b"PERF_RECORD_EXIT": (EXIT, layouts.EXIT),
}
"""Kinds of records, by the text that they begin with: the kind, and perf's type."""
_ADDRESS = re.compile(rb"\s*([0-9a-f]{1,16}) ")
_MOST_TEXTS, _MOST_LINES, _MOST_STACKS = 1 << 14, 1 << 16, 1 << 17
_LONGEST = 1 << 16
"""Bytes of a line; longer ones are not understood."""
_MOST_FRAMES = 1 << 10


class Record(NamedTuple):
    """``time``: ns of the clock that perf was told to use. ``number``: a sample's events; how many were lost."""

    kind: int
    time: int
    pid: int
    tid: int
    comm: str = ""
    stack: Stack = ()
    state: str | None = None
    """State of a thread that is switched out: "" preempted, "ended", one of `states.BLOCKED`; None: not known."""
    number: int = 0


class _First(NamedTuple):
    """The first line of a record, with the ends of lines that names in it have; as far as it has come."""

    line: bytes
    header: re.Match[bytes] | None
    sample: re.Match[bytes] | None
    switched: re.Match[bytes] | None

    @classmethod
    def of(cls, line: bytes) -> _First:
        header = _HEADER.match(line[:_LONGEST])
        sample = _PERIOD.match(header[6]) if header else None
        switched = _SWITCHED.fullmatch(sample[3]) if sample and sample[2] == _SWITCHES[1] else None
        return cls(line, header, sample, switched)

    @property
    def goes_on(self) -> bool:
        """Whether it lacks its end."""
        if len(self.line) > _LONGEST_SWITCH:
            return False
        return bool(self.sample and self.sample[2] == _SWITCHES[1] and not self.switched)

    @property
    def has_a_name(self) -> bool:
        """Whether what is before its ids can be one name."""
        return self.header is not None and len(self.header[1].strip(b" ")) <= _LONGEST_NAME


class Records:
    """Turns the text into records."""

    def __init__(
        self,
        went: Callable[[int, int, int, int], bool],
        named: Callable[[int, int], Frame | None] = lambda _pid, _address: None,
    ) -> None:
        """``went``: whether a record of this type of perf, pid, tid and time (ns) went to perf script and has not been
        asked for. ``named``: the frame of code that was made at run time, by pid and address."""
        self.stacks: dict[Stack, Stack] = {}
        self.left_out = 0
        """Samples whose stack was one too many."""
        self._went, self._named = went, named
        self._texts: dict[bytes, Stack] = {}
        self._lines: dict[bytes, tuple[Frame, ...]] = {}
        self._rest = b""
        self._begun: bytes | None = None
        """Lines that are the begin of a switch's first one: a name in it has ends of lines."""
        self._is_forged = False
        """Whether the last line that looked like a record's first one was none."""
        self._sample: Record | None = None
        self._body: list[bytes] = []

    def feed(self, data: bytes) -> Iterator[Record]:
        """The records that ``data``, which follows what was given before, completes; b"" is the end."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop() if data else b""
        if len(self._rest) > _LONGEST:
            self._rest = b""
            yield self._bad()
        for line in lines:
            if self._sample and self._begun is None and line.startswith(b"\t"):  # most lines: here, for their number
                self._frame(line)
            else:
                yield from self._line(line)
        if not data:
            if self._begun is not None:
                yield self._bad()
            if self._sample:
                yield self._complete(self._sample)

    def _frame(self, line: bytes) -> None:
        if len(self._body) < _MOST_FRAMES and len(line) <= _LONGEST:
            self._body.append(line)

    def _line(self, line: bytes) -> Iterator[Record]:
        begun, self._begun = self._begun, None
        if begun is not None:
            first = _First.of(begun + b"\n" + line)
            if first.has_a_name:
                yield from self._first_line(first)
                return
            yield self._bad()
        if self._sample:
            yield self._complete(self._sample)
        if line:
            yield from self._first_line(_First.of(line))

    def _first_line(self, first: _First) -> Iterator[Record]:
        if first.goes_on:
            self._begun = first.line
        elif record := self._begin(first):
            yield record

    def _bad(self) -> Record:
        return Record(FORGED if self._is_forged else BAD, 0, 0, 0)

    def _begin(self, first: _First) -> Record | None:
        """The record of a line that is not a frame; None of a sample, whose frames follow, and of what is not used."""
        if first.header is None:
            return self._bad()
        comm, pid, tid, seconds, part, rest = first.header.groups()
        time = int(seconds + part)
        record = Record(BAD, time, int(pid), int(tid), name_of(comm.strip(b" ")))
        kind, of_perf = _kind(rest, first.sample)
        self._is_forged = not self._went(of_perf, record.pid, record.tid, time)
        if self._is_forged:
            return self._bad()
        if kind == DROPPED and (lost := _LOST.match(rest)):
            return record._replace(kind=DROPPED, number=int(lost[1]))
        if kind in (SAMPLE, SWITCH) and first.sample:
            self._sample = record._replace(kind=kind, number=int(first.sample[1]))
            if switched := first.switched:
                left, state = switched[1] or switched[3], switched[2] or switched[4]
                if event := parse_sched(_PLAIN % (pid, tid, left, state)):
                    self._sample = self._sample._replace(tid=event.tid, state=event.state)
            return None
        ids = _IDS.search(rest) if kind in (FORK, EXIT) else None
        record = record._replace(pid=int(ids[1]), tid=int(ids[2])) if ids else record
        return None if kind == _UNUSED else record._replace(kind=kind)

    def _complete(self, sample: Record) -> Record:
        text = b"\n".join(self._body)
        stack = self._texts.get(text)
        if stack is None:
            stack = self._stack(sample.pid)
            if _NO_MAP not in text:  # else its names are those of one process, and of now
                if len(self._texts) >= _MOST_TEXTS:
                    self._texts.clear()
                self._texts[text] = stack
        self._sample, self._body = None, []
        return sample._replace(stack=stack)

    def _stack(self, pid: int) -> Stack:
        """Stack of the lines of a sample; equal stacks are one object."""
        stack = tuple(frame for line in reversed(self._body) for frame in self._frames(line, pid))
        known = self.stacks.get(stack)
        if known is None and len(self.stacks) >= _MOST_STACKS:
            self.left_out += 1
            return (Frame(OTHER_STACKS, "other"),)
        return known or self.stacks.setdefault(stack, stack)

    def _frames(self, line: bytes, pid: int) -> tuple[Frame, ...]:
        if line.endswith(_NO_MAP):
            address = _ADDRESS.match(line)
            return ((self._named(pid, int(address[1], 16)) if address else None) or _NOT_NAMED,)
        found = self._lines.get(line)
        if found is None:
            found = parse_frames(line, addrs=False, java=False) or ()
            if len(self._lines) >= _MOST_LINES:
                self._lines.clear()
            self._lines[line] = found
        return found


def _kind(rest: bytes, sample: re.Match[bytes] | None) -> tuple[int, int]:
    """Kinds of what follows a record's time: what it is here, `_UNUSED` for what is of no use, and perf's type, 0 for
    one that is not known."""
    if sample:
        return SWITCH if sample[2].startswith(_SWITCHES) else SAMPLE, layouts.SAMPLE
    if _LOST.match(rest):
        return DROPPED, layouts.LOST
    return next((kinds for text, kinds in _RECORDS.items() if rest.startswith(text)), (_UNUSED, 0))
