"""The lines of the scripts, which stap/README.md describes: from bytes to values and stacks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .stacks import KernelNames, Stacks, UserNames
from .text import plain, unescaped

VERSION = 1
_MINOR_BITS = 20
_MAX_ERRNO = 4095
_NO_FILE = b"-"
_LONGEST = 1 << 14
"""Bytes of a line; longer ones are not understood."""
_MOST_FRAMES, _MOST_STACKS = 1 << 10, 1 << 17
_WAIT = re.compile(
    rb"([wo]) (\d{1,10}) (\d{1,10}) (\S) (-?\d{1,10}) (-?\d{1,10}) (\d{1,19}) (-?\d{1,19}) (-?\d{1,19}) (-?\d{1,19})"
)
_FRAME = re.compile(rb"([fk]) (\d{1,10}) (\d{1,5}) (.*)", re.DOTALL)
_NAME = re.compile(rb"n (\d{1,10}) (\d{1,10}) (.*)", re.DOTALL)
_NUMBERS = re.compile(rb"([bceglrsx])((?: -?\d{1,20}){2,4})")
_IOCTL = re.compile(
    rb"([iI]) (\d{1,10}) (\d{1,10}) (-?\d{1,10}) (\d{1,10}) (\d{1,19}) (\d{1,19}) (-?\d{1,10}) (.{1,64})",
    re.DOTALL,
)
_WOKEN = re.compile(
    rb"u (\d{1,10}) (\d{1,10}) (\d{1,19}) (\d{1,10}) (\d{1,10}) (-?\d{1,10}) (-?\d{1,10}) ([a-z]) (\d{1,10})"
)
_CALL = re.compile(
    rb"([aA]) (\d{1,10}) (\d{1,10}) (\d{1,19}) (\d{1,19}) (-?\d{1,10}) (-?\d{1,19}) (.{1,4096})", re.DOTALL
)
_DESCRIPTOR = re.compile(
    rb"d (\d{1,10}) (-?\d{1,10}) (\d{1,7}) (\d{1,10}) (\d{1,10}) (\S{1,64}) (.{0,1024})", re.DOTALL
)
_LOST = re.compile(rb"lost (returns|scope|stacks|threads) (\d{1,19})")
_COST = re.compile(rb"cost (\d{1,19}) (\d{1,19})")
_END = re.compile(rb"end (\d{1,19}) (\d{1,19})")
_STOP = re.compile(rb"stop (\d{1,19})")
_BEGIN = re.compile(rb"stallscope (\d{1,5}) (\d{1,19}) (\d{1,19})")


class Wait(NamedTuple):
    """Wait off a core. Times in ns; ``since``: CLOCK_MONOTONIC; ``ran``: on a core before it, -1: not known."""

    pid: int
    tid: int
    letter: str
    """State as in proc(5); R: preempted, or new; ?: it was off its core before the trace began; -: it ran from then on,
    and its switch from the core was skipped."""
    kernel: int
    user: int
    """Numbers of stacks: 0 none, -1 there was no room for it."""
    since: int
    ran: int
    blocked: int
    runnable: int
    is_open: bool = False
    """Whether the wait goes on as the trace ends."""


class Name(NamedTuple):
    """Name of a thread."""

    pid: int
    tid: int
    text: str


class Fork(NamedTuple):
    """A new thread, at ``time``."""

    pid: int
    tid: int
    time: int


class Exec(NamedTuple):
    """A thread executed a program, at ``time``."""

    pid: int
    tid: int
    time: int


class Exit(NamedTuple):
    """A thread ran for ``ran`` ns, and has ended at ``time``."""

    pid: int
    tid: int
    time: int
    ran: int


class Runs(NamedTuple):
    """A thread has run since ``ran`` ns as the trace ends."""

    tid: int
    ran: int


class Sampled(NamedTuple):
    """A thread runs."""

    pid: int
    tid: int
    kernel: int
    user: int


class Inside(NamedTuple):
    """A thread is in a call that began at ``time``: told before what happens in it."""

    pid: int
    tid: int
    time: int


class Left(NamedTuple):
    """The call that began at ``time``, and those in it, are over: their returns were not seen."""

    pid: int
    tid: int
    time: int


class Descriptor(NamedTuple):
    """Meaning of a descriptor from now on."""

    pid: int
    fd: int
    mode: int
    """st_mode; 0: it is no open file."""
    device: int
    """Number of the device as the kernel has it, major << 20 | minor; that of the file system, if it is no device."""
    filesystem: bytes
    basename: bytes


class IoctlCall(NamedTuple):
    """A call of ioctl(2)."""

    pid: int
    tid: int
    fd: int
    command: int
    time: int
    length: int
    user: int
    error: int
    """errno; 0: none."""
    is_open: bool
    """Whether the call goes on as the trace ends."""


class FunctionCall(NamedTuple):
    """A call of a library's function."""

    pid: int
    tid: int
    time: int
    length: int
    user: int
    """The caller's stack; of one that goes on, where the thread waits."""
    result: int
    function: str
    is_open: bool
    """Whether the call goes on as the trace ends."""


class Woken(NamedTuple):
    """A thread is woken. Of an interrupt, the waker's ids are 0."""

    pid: int
    tid: int
    time: int
    waker_pid: int
    waker_tid: int
    kernel: int
    user: int
    context: str
    """t: the thread; s: a softirq; d: an interrupt of a device; c: of the core's timer; h: another one."""
    number: int
    """Number of the interrupt or softirq."""


class SleepsAt(NamedTuple):
    """Registers of a thread that sleeps, for its user code; 0 for a thread of the kernel."""

    tid: int
    ip: int
    sp: int
    bp: int


_Numbers = Fork | Exec | Exit | Runs | Sampled | Inside | Left | SleepsAt

_KINDS: dict[bytes, type[_Numbers]] = {
    b"b": Fork,
    b"c": Inside,
    b"e": Exec,
    b"g": SleepsAt,
    b"l": Left,
    b"r": Runs,
    b"s": Sampled,
    b"x": Exit,
}

Line = Wait | Name | _Numbers | Descriptor | IoctlCall | FunctionCall | Woken


def _wait(match: re.Match[bytes]) -> Wait:
    kernel, user, since, ran, blocked, runnable = map(int, match.groups()[4:])
    letter, is_open = match[4].decode("latin-1"), match[1] == b"o"
    return Wait(int(match[2]), int(match[3]), letter, kernel, user, since, ran, blocked, runnable, is_open)


def _name(match: re.Match[bytes]) -> Name:
    return Name(int(match[1]), int(match[2]), unescaped(match[3]))


def _numbers(match: re.Match[bytes]) -> _Numbers | None:
    numbers = tuple(map(int, match[2].split()))
    kind = _KINDS[match[1]]
    return kind._make(numbers) if len(numbers) == len(kind._fields) else None


def _ioctl(match: re.Match[bytes]) -> IoctlCall:
    pid, tid, fd, command, time, length, user = map(int, match.groups()[1:8])
    return IoctlCall(pid, tid, fd, command, time, length, user, _errno(match[9]), match[1] == b"I")


def _call(match: re.Match[bytes]) -> FunctionCall:
    pid, tid, time, length, user, result = map(int, match.groups()[1:7])
    return FunctionCall(pid, tid, time, length, user, result, unescaped(match[8]), match[1] == b"A")


def _errno(result: bytes) -> int:
    """``-25 (ENOTTY)`` is 25."""
    match = re.match(rb"-(\d{1,4})\b", result)
    return int(match[1]) if match and int(match[1]) <= _MAX_ERRNO else 0


def _descriptor(match: re.Match[bytes]) -> Descriptor:
    pid, fd, mode, major, minor = map(int, match.groups()[:5])
    filesystem = b"" if match[6] == _NO_FILE else plain(match[6])
    return Descriptor(pid, fd, mode, major << _MINOR_BITS | minor, filesystem, plain(match[7]))


def _woken(match: re.Match[bytes]) -> Woken:
    pid, tid, time, waker_pid, waker_tid, kernel, user = map(int, match.groups()[:7])
    return Woken(pid, tid, time, waker_pid, waker_tid, kernel, user, match[8].decode(), int(match[9]))


_MADE: tuple[tuple[re.Pattern[bytes], Callable[[re.Match[bytes]], Line | None]], ...] = (
    (_WAIT, _wait),
    (_WOKEN, _woken),
    (_NUMBERS, _numbers),
    (_NAME, _name),
    (_IOCTL, _ioctl),
    (_CALL, _call),
    (_DESCRIPTOR, _descriptor),
)
"""Makers of the kinds of lines: pattern and function of each, the most frequent first."""


class Lines:
    """Turns the stream into lines with a meaning; keeps frames, times and losses."""

    def __init__(self) -> None:
        self.began = 0
        """CLOCK_MONOTONIC ns, 0 before the first line."""
        self.wall = 0
        """Wall-clock time when ``began`` was, Unix epoch ns."""
        self.version = 0
        self.printed: int | None = None
        """Number of lines that the script says it has printed; None: it did not come to its end."""
        self.lost = Counter({"events": 0, "lines not understood": 0, "stacks": 0, "threads": 0})
        self.stopped = 0
        """Time when the script was stopped, CLOCK_MONOTONIC ns; 0: it was not, or not all of its lines have come."""
        self.cost = 0
        """ns that the script's probes took together; 0: not known."""
        self._read = 0
        self._tail = b""
        self._frames: dict[int, dict[int, bytes]] = {}
        self._kernel: set[int] = set()

    @property
    def events(self) -> int:
        """Number of lines so far that were understood, and of those that did not arrive."""
        return max(self._read, self.printed or 0)

    @property
    def number(self) -> int:
        """Number of stacks so far."""
        return len(self._frames)

    def feed(self, data: bytes) -> Iterator[Line]:
        """The lines that are complete."""
        *lines, self._tail = (self._tail + data).split(b"\n")
        if len(self._tail) > _LONGEST:
            self._tail = self._tail[:_LONGEST]
        for line in lines:
            if (found := self._line(line)) is not None:
                yield found

    def finish(self) -> None:
        """The stream has ended: counts what did not arrive."""
        if self._tail:
            self.lost["lines not understood"] += 1
        if self.printed is not None:
            self.lost["events"] += max(self.printed - self._read - self.lost["lines not understood"], 0)

    def _line(self, line: bytes) -> Line | None:
        known = self._event(line) if len(line) < _LONGEST else None
        if known is not None:
            self._read += 1
            return known
        if match := _FRAME.fullmatch(line):
            self._read += 1
            self._frame(match[1] == b"k", int(match[2]), int(match[3]), match[4])
        elif match := _LOST.fullmatch(line):
            self.lost["threads" if match[1] == b"scope" else match[1].decode()] += int(match[2])
        elif match := _END.fullmatch(line):
            self.printed = int(match[2])
        elif match := _COST.fullmatch(line):
            self.cost = int(match[2])
        elif match := _STOP.fullmatch(line):
            self.stopped = int(match[1])
        elif match := _BEGIN.fullmatch(line):
            self.version, self.began, self.wall = map(int, match.groups())
        elif line:
            self.lost["lines not understood"] += 1
        return None

    def _event(self, line: bytes) -> Line | None:
        for pattern, made in _MADE:
            if match := pattern.fullmatch(line):
                return made(match)
        return None

    def _frame(self, is_kernel: bool, stack: int, number: int, text: bytes) -> None:
        if number >= _MOST_FRAMES or (stack not in self._frames and len(self._frames) >= _MOST_STACKS):
            self.lost["frames"] += 1
            return
        self._frames.setdefault(stack, {})[number] = text
        if is_kernel:
            self._kernel.add(stack)

    def stacks(self, kallsyms: KernelNames | None, names: UserNames | None = None) -> Stacks:
        """The stacks by their numbers. ``kallsyms`` names the kernel's functions, ``names`` those of users."""
        return Stacks(self._frames, self._kernel, kallsyms, names)
