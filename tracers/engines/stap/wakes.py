"""Wakers that ended the waits of a trace with SystemTap, and those of these wakers' waits meanwhile: as
bpf/wakeup.bpf.c."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ....converters.model import Labels, Stack
from ....converters.model.states import RUNNABLE
from ....converters.readers.stap.lines import Exit, Fork, Line, Wait, Woken
from ....converters.readers.stap.stacks import Stacks
from ...kernel.records import (
    BY_CORE,
    BY_DEVICE,
    BY_NOBODY,
    BY_SOFTIRQ,
    BY_THREAD,
    BY_TIMER,
    BY_UNKNOWN,
    Origin,
    Waker,
)
from ...measures.wakeup import WakeUp
from ..named_rows import Place
from ..rows import Row
from ..wakers import Wakers
from .threads import Filter, Part, Threads

_MOST_ROWS = 1 << 19
_CONTEXTS = {"t": BY_THREAD, "s": BY_SOFTIRQ, "d": BY_DEVICE, "c": BY_TIMER, "h": BY_CORE}
_UNKNOWN = (Waker(0, 0, 0, 0, 0, 0, BY_UNKNOWN),)
_NOBODY = (Waker(0, 0, 0, 0, 0, 0, BY_NOBODY),)
_TIMER = ("timer_interrupt", "hrtimer_", "tick_")
"""Parts of the names of functions by which a timer's interrupt wakes."""


class _Link(NamedTuple):
    """One waker, and its own last wait: from ``began`` to ``ended``, ns; both 0 if it does not matter."""

    waker: Waker
    began: int = 0
    ended: int = 0


class _Key(NamedTuple):
    pid: int
    tid: int
    state: str
    origin: tuple[int, int]
    wakers: tuple[Waker, ...]
    is_open: bool


class Wakes:
    """Takes lines, and waits; gives rows."""

    def __init__(self, measure: WakeUp) -> None:
        self.lost: Counter[str] = Counter({"wake-ups": 0})
        self._depth = measure.depth
        self._wanted = Filter(measure.shortest, measure.longest, measure.states)
        self._columns = len(measure.columns)
        self._woken: dict[int, tuple[_Link, ...]] = {}
        """Chain of wakers of each thread that was woken and has not run yet."""
        self._last: dict[int, tuple[_Link, ...]] = {}
        """Chain of each thread's last wait, with that wait's times in a link of its own at the beginning."""
        self._rows: dict[_Key, list[int]] = {}

    def take(self, line: Line) -> None:
        """The next line."""
        if isinstance(line, Woken):
            self._wake(line)
        elif isinstance(line, (Exit, Fork)):
            self._woken.pop(line.tid, None)
            self._last.pop(line.tid, None)

    def _wake(self, line: Woken) -> None:
        context = _CONTEXTS.get(line.context, BY_UNKNOWN)
        tid, pid = line.waker_tid, line.waker_pid
        waker = Waker(line.user, line.kernel, tid, pid, tid, line.number, context)
        chain: tuple[_Link, ...] = (_Link(waker),)
        if self._depth > 1 and context == BY_THREAD and (own := self._last.get(tid)):
            chain = (_Link(waker, own[0].began, own[0].ended), *_up_to(own[1:], line.tid))[: self._depth]
        self._woken[line.tid] = chain

    def waited(self, wait: Wait, parts: Sequence[Part]) -> None:
        """A thread has waited, or still waits, for these times in these states."""
        blocked = parts[0]
        is_woken = len(parts) > 1
        if blocked.state.startswith(RUNNABLE):
            return None  # it did not wait for anybody
        self._last.pop(wait.tid, None)
        chain = self._woken.pop(wait.tid, ())
        if wait.is_open:
            return self._add(wait, blocked, _UNKNOWN if is_woken else _NOBODY, blocked.time, 1)
        if not chain or wait.letter in "?-":
            return self._add(wait, blocked, _UNKNOWN, blocked.time, 1)
        until = wait.since + blocked.time
        self._last[wait.tid] = (_Link(_NOBODY[0], wait.since, until), *chain)
        for wakers, ns, count in shares(chain, wait.since, until):
            self._add(wait, blocked, wakers, ns, count)
        return None

    def _add(self, wait: Wait, part: Part, wakers: tuple[Waker, ...], time: int, count: int) -> None:
        wanted = self._wanted
        if not wanted.shortest <= part.whole <= wanted.longest or (wanted.states and part.state not in wanted.states):
            return
        key = _Key(wait.pid, wait.tid, part.state, part.origin, wakers, wait.is_open)
        if key not in self._rows and len(self._rows) >= _MOST_ROWS:
            self.lost["wake-ups"] += count
            key = key._replace(origin=(-1, -1), wakers=_UNKNOWN)
        values = self._rows.setdefault(key, [0, 0, 0, 0])
        if count:
            values[2] = min(values[2], part.time) if values[1] else part.time
            values[3] = max(values[3], part.time)
        values[0] += time
        values[1] += count

    def rows(self, stacks: Stacks, names: Names, threads: Threads) -> dict[Place, list[int]]:
        """Rows of the measure's columns."""
        told = Wakers(_Lives(), _Parts(stacks), names)
        rows: dict[Place, list[int]] = {}
        for key, values in self._rows.items():
            frames, labels = told.of(tuple(_timer(waker, stacks) for waker in key.wakers))
            place = Place(
                key.pid, key.tid, key.state, threads.stack_of(stacks, key.origin, key.tid) + frames, key.is_open, labels
            )
            row = rows.setdefault(place, [0, 0, 0, 0])
            if values[1]:
                row[2] = min(row[2], values[2]) if row[1] else values[2]
            row[0] += values[0]
            row[1] += values[1]
            row[3] = max(row[3], values[3])
        return {place: values[: self._columns] for place, values in rows.items()}


def shares(chain: Sequence[_Link], began: int, ended: int) -> Iterator[tuple[tuple[Waker, ...], int, int]]:
    """A wait's time divided: (first links, ns, number of waits), the part in which the last one of these was not in its
    own last wait. The wait counts once, in the last part."""
    wakers: tuple[Waker, ...] = ()
    for at, link in enumerate(chain):
        wakers = (*wakers, link.waker)
        begin, end = max(link.began, began), min(link.ended, ended)
        is_last = at + 1 == len(chain) or end <= begin
        if is_last:
            begin = end = began
        time = ended - began - (end - begin)
        if time or is_last:
            yield wakers, time, int(is_last)
        if is_last:
            return
        began, ended = begin, end


def _up_to(links: Sequence[_Link], tid: int) -> tuple[_Link, ...]:
    """Links before one of this thread: a thread does not end its own wait."""
    for at, link in enumerate(links):
        if link.waker.tid == tid:
            return tuple(links[:at])
    return tuple(links)


def _timer(waker: Waker, stacks: Stacks) -> Waker:
    """An interrupt of which nothing is known is a timer's, or another core's: its functions tell."""
    if waker.context != BY_CORE:
        return waker
    names = [frame.name for frame in stacks.of(waker.kstack, 0)]
    return waker._replace(context=BY_TIMER) if any(sign in name for name in names for sign in _TIMER) else waker


class Names:
    """Names of processes and threads, by their ids."""

    def __init__(self, threads: Mapping[int, str]) -> None:
        self._threads = threads

    def labels(self, origin: Origin, state: str, is_open: bool) -> Labels:
        process = self.process(origin.tgid)
        thread = self._threads.get(origin.tid, "") or process
        return ("pid", origin.tgid), ("process", process), ("thread", thread), ("tid", origin.tid)

    def pid(self, number: int) -> tuple[int, int]:
        return number, 1

    def process(self, pid: int) -> str:
        return self._threads.get(pid, "") or "[unknown]"

    def thread(self, pid: int, first: int) -> str:
        return self._threads.get(first, "") or self.process(pid)


class _Lives:
    """Threads have one life: its number is the thread's."""

    def numbered(self, origin: Origin) -> Origin:
        return origin

    def first(self, life: int) -> int:
        return life


class _Parts:
    """The stacks of a waker."""

    def __init__(self, stacks: Stacks) -> None:
        self._stacks = stacks

    def parts_of(self, row: Row) -> tuple[Stack, Stack]:
        return self._stacks.of(0, row.origin.ustack), self._stacks.of(row.origin.kstack, 0)
