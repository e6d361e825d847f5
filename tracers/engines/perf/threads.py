"""The threads of a trace with perf: their switches, added up to waits by stack, and to accounts that fill their time.

A thread's own switches are reported, the moments in which others wake it are not: a wait ends when the thread runs
again. What it waited for a core after it was woken is taken out of its waits at the end (`delays`).
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ....converters.model import Frame, Stack
from ....converters.model.states import BY_LETTER, OTHER, RUNNABLE_STATES, RUNNING, WOKEN
from ....converters.model.states import PREEMPTED as PREEMPTED_STATE
from ..asleep import Asleep
from ..named_rows import LOST, NO_STACK, NOT_SAMPLED, Account, Place, add_wait, shared_out
from . import records
from .corrections import Counted, correct
from .delays import Counts, Delay, OnCore
from .records import Record

_ON, _OFF = "on", "off"
_NO_STACK: Stack = (Frame(NO_STACK, "other"),)
_ASLEEP: Stack = (Frame("[asleep]", "other"),)
"""Stands for that of a wait that had begun before the trace, which is known by the thread."""
_LOST: Stack = (Frame(LOST, "other"),)
_NOT_SAMPLED: Stack = (Frame(NOT_SAMPLED, "other"),)
_NOT_STARTED: Stack = (Frame("[not started]", "other"),)
_ENDED = "ended"
_LOSSES = {records.BAD: "lines not understood", records.FORGED: "lines that programs forged", records.DROPPED: "events"}
_MOST_ENDED = 1 << 16
"""Maximum number of ended threads; others are counted as lost."""


@dataclass
class _Thread:
    """``phase`` since ``since``; ``stack`` and ``state`` of the wait, while it is off its core."""

    account: Account
    phase: str
    since: int
    stack: Stack = _NO_STACK
    state: str = OTHER
    is_new: bool = True
    """Whether nothing was reported so far of a thread that was there before the trace."""
    is_told: bool = False
    """The sample of the switch has come, the switch itself has not."""
    samples: Counter[Stack] = field(default_factory=Counter)
    events: Counter[Stack] = field(default_factory=Counter)
    delay: Delay = field(default_factory=Delay)
    on_core: OnCore = field(default_factory=OnCore)


class Filter(NamedTuple):
    """Filter of waits by length in ns and state (None: all)."""

    shortest: int
    longest: int
    states: Collection[str] | None


class Threads:
    """Takes records in the order of their times."""

    def __init__(self, began: int, launched: int = 0, asleep: Asleep | None = None) -> None:
        """``began``: ns of the records' clock. What ``launched``, a process, did before it became the command does not
        count. ``asleep``: the stacks of threads that sleep when the trace begins."""
        self._asleep = asleep or Asleep()
        self.began, self.ended = began, 1 << 64
        """Records of other times do not count."""
        self.last = 0
        """Time of the last record that counted."""
        self.taken = 0
        """Records that were not lost."""
        self._launched = launched
        self.names: dict[int, str] = {}
        """Names by tid, the last one that was reported."""
        self._reported: dict[int, str] = {}
        self.lost: Counter[str] = Counter({"events": 0, "intervals": 0, "lines not understood": 0})
        self._threads: dict[int, _Thread] = {}
        self._ended: list[_Thread] = []
        self._waits: dict[tuple[int, int, str, Stack, bool], list[int]] = {}
        self._filter = Filter(0, 1 << 64, None)
        self._has_stacks = False
        self._looks: deque[tuple[int, Counts]] = deque()
        """Looks at times to which the records have not come: they are read later."""

    def wanted(self, waits: Filter) -> None:
        """Sets which waits become rows; switches are sampled."""
        self._filter, self._has_stacks = waits, True

    def known(self, pid: int, tid: int, letter: str) -> None:
        """A thread that is there as the trace begins, with its state of proc(5)."""
        runs = letter == "R"
        state = PREEMPTED_STATE if runs else BY_LETTER.get(letter, OTHER)
        phase, stack = (_ON, _NO_STACK) if runs else (_OFF, _ASLEEP)
        self._threads[tid] = _Thread(Account(pid, tid, self.began), phase, self.began, stack, state)

    def look(self, time: int, counted: Counts) -> None:
        """Adds a look: at this time the kernel had counted so many ns in which these threads, by tid, were on a core,
        and waited for one."""
        self._looks.append((time, counted))

    def _take_looks(self, until: int) -> None:
        while self._looks and self._looks[0][0] <= until:
            when, counted = self._looks.popleft()
            for tid, (on_core, waiting) in counted.items():
                if thread := self._threads.get(tid):
                    is_on = thread.phase == _ON
                    runs = max(when - thread.since, 0) if is_on else 0
                    thread.on_core.seen(on_core, thread.account.on_cpu + runs, runs=is_on)
                    thread.delay.seen(waiting)

    def living(self) -> list[tuple[int, int]]:
        """(pid, tid) of those of whom no end was reported so far."""
        return [(thread.account.pid, tid) for tid, thread in self._threads.items()]

    def pids(self) -> set[int]:
        """Pids of all processes so far."""
        return {thread.account.pid for thread in self._all()}

    def take(self, record: Record) -> None:
        """The next record."""
        kind = record.kind
        if kind in _LOSSES:
            self.lost[_LOSSES[kind]] += max(record.number, 1)
            return
        self.taken += 1
        if not self.began <= record.time <= self.ended or record.tid <= 0:
            return  # perf describes what is there already; or the thread has no id any more
        self.last = max(self.last, record.time)
        self._take_looks(record.time)
        if kind in (records.EXEC, records.FORK):
            self._take_beginning(record)
            return
        thread = self._threads.get(record.tid) or self._begin(record, _OFF if kind == records.IN else _ON)
        self._name(record)
        if kind == records.EXIT:
            self._end(thread, record.time)
        elif kind == records.SAMPLE:
            thread.samples[record.stack] += 1
            thread.events[record.stack] += record.number
        elif kind == records.IN:
            self._switched_in(thread, record.time)
        else:
            self._switched_out(thread, record)
        thread.is_new = False

    def _name(self, record: Record) -> None:
        """A thread that was there before: perf first tells its own reading of /proc, which some names spoil."""
        reported = self._reported.setdefault(record.tid, record.comm if record.tid in self.names else "")
        if record.comm and record.comm != reported:
            self._reported[record.tid] = self.names[record.tid] = record.comm

    def _begin(self, record: Record, phase: str) -> _Thread:
        made = _Thread(Account(record.pid, record.tid, record.time), phase, record.time, state=RUNNABLE_STATES[0])
        self._threads[record.tid] = made
        return made

    def _take_beginning(self, record: Record) -> None:
        """A thread begins, or a program in one."""
        if record.kind == records.FORK and record.tid not in self._threads:
            thread = self._begin(record, _OFF)
            thread.stack, thread.account.created = _NOT_STARTED, True
            thread.delay.first = 0
        elif record.kind == records.EXEC and record.tid == self._launched:
            self._restart(record)

    def _restart(self, record: Record) -> None:
        """The command begins."""
        before = self._threads.pop(record.tid, None)
        self._waits = {place: values for place, values in self._waits.items() if place[1] != record.tid}
        made = self._begin(record, _ON)
        made.delay.first = before.delay.last if before else None

    def _switched_in(self, thread: _Thread, time: int) -> None:
        if thread.phase == _ON and thread.is_new:
            thread.phase, thread.state = _OFF, PREEMPTED_STATE  # it had waited for a core since the trace began
        if thread.phase == _OFF:
            self._waited(thread, time)
        else:
            self._unseen(thread, time)
        thread.phase, thread.since, thread.is_told = _ON, time, False

    def _switched_out(self, thread: _Thread, record: Record) -> None:
        """A switch is reported twice: by a sample, which has the stack, and by a record, which has the last word."""
        is_sample = record.kind == records.SWITCH
        if thread.phase == _OFF and thread.is_told and not is_sample:
            thread.is_told = False
            if record.kind == records.PREEMPTED:
                thread.state = PREEMPTED_STATE
            return
        if thread.phase == _OFF and thread.is_new:
            thread.phase = _ON  # it was woken before the trace began
        if thread.phase == _OFF:
            self._unseen(thread, record.time)
        else:
            thread.account.on_cpu += record.time - thread.since
        thread.account.switches += 1
        thread.phase, thread.since, thread.is_told = _OFF, record.time, is_sample
        thread.stack = record.stack if is_sample else self._stack_of(thread)
        thread.state = PREEMPTED_STATE if record.kind == records.PREEMPTED else OTHER
        if record.state is not None:
            thread.state = record.state or PREEMPTED_STATE

    def _stack_of(self, thread: _Thread) -> Stack:
        """Stack of a switch without a sample: perf had no room for it, or more came than the kernel lets it have."""
        if thread.is_new or not self._has_stacks:
            return _NO_STACK
        self.lost["stacks"] += 1
        return _LOST

    def _unseen(self, thread: _Thread, time: int) -> None:
        """Notes that another switch was lost since the last one: what the thread did is not known."""
        self.lost["intervals"] += 1
        thread.stack, thread.state = _LOST, OTHER
        self._waited(thread, time)

    def _waited(self, thread: _Thread, time: int, *, is_open: bool = False) -> None:
        length, account = max(time - thread.since, 0), thread.account
        if thread.stack is _ASLEEP and not self._asleep.has(account.tid, time):
            thread.stack = _NO_STACK
        if thread.state in RUNNABLE_STATES:
            account.runnable += length
            thread.delay.preempted += 0 if is_open else length
        else:
            account.blocked[thread.state] += length
            if not is_open:
                thread.delay.waited(thread.state, thread.stack, length)
        wanted = self._filter
        if not wanted.shortest <= length <= wanted.longest or (wanted.states and thread.state not in wanted.states):
            return
        place = account.pid, account.tid, thread.state, thread.stack, is_open
        values = self._waits.setdefault(place, [0, 0, length, 0])
        values[0] += length
        values[1] += 1
        values[2], values[3] = min(values[2], length), max(values[3], length)

    def _end(self, thread: _Thread, time: int) -> None:
        if thread.phase == _ON:
            thread.account.on_cpu += time - thread.since
        elif thread.state != _ENDED:
            self._waited(thread, time)
        thread.account.ended, thread.account.exited = time, True
        if len(self._ended) < _MOST_ENDED:
            self._ended.append(thread)
        else:
            self.lost["threads"] += 1
        del self._threads[thread.account.tid]

    def finish(self, ended: int) -> list[Account]:
        """The trace ends; returns the accounts of all threads."""
        self._take_looks(ended)
        for thread in self._threads.values():
            if thread.phase == _ON:
                thread.account.on_cpu += max(ended - thread.since, 0)
            elif thread.state == _ENDED:
                thread.account.ended, thread.account.exited = thread.since, True
                continue
            else:
                self._waited(thread, ended, is_open=True)
            thread.account.ended = max(ended, thread.since)
        for thread in self._all():
            for (state, stack), part in thread.delay.parts().items():
                thread.account.blocked[state] -= part
                thread.account.runnable += part
                self._waited_for_core(thread, state, stack, part)
        if self.lost["events"] or self.lost["intervals"]:
            counted = (Counted(each.account, each.on_core, each.delay.too_much) for each in self._all())
            states = self._filter.states
            correct(counted, self._waits, shows_lost=not states or OTHER in states)
        return [thread.account for thread in self._all()]

    def _waited_for_core(self, thread: _Thread, state: str, stack: Stack, part: int) -> None:
        """``part`` ns of the thread's waits in this place become waits for a core, in its rows."""
        account, states = thread.account, self._filter.states
        row = self._waits.get((account.pid, account.tid, state, stack, False))
        number = all_ = thread.delay.waits[state, stack][1]
        if row:
            number = min(row[1], all_)  # others were too short, or too long
            part = min(part * number // all_, row[0])
            row[0] -= part
            row[2] = min(row[2], row[0] // row[1])
        elif not states or state in states:
            return
        if part and (not states or WOKEN in states):
            mean = part // number
            new = self._waits.setdefault((account.pid, account.tid, WOKEN, stack, False), [0, 0, mean, mean])
            new[0] += part
            new[1] += number
            new[2], new[3] = min(new[2], mean), max(new[3], mean)

    def without_delays(self) -> int:
        """Number of threads of which it is not known how long they waited for a core after waits."""
        return sum(bool(thread.delay.waits) and not thread.delay.is_known for thread in self._all())

    def _all(self) -> list[_Thread]:
        return [*self._ended, *self._threads.values()]

    def waits(self) -> dict[Place, list[int]]:
        """Rows of time, number, shortest and longest."""
        rows: dict[Place, list[int]] = {}
        for (pid, tid, state, stack, is_open), values in self._waits.items():
            known = (self._asleep.stack(tid) or _NO_STACK) if stack is _ASLEEP else stack
            add_wait(rows, Place(pid, tid, state, known, is_open), values)
        return rows

    def running(self, period: int | None) -> dict[Place, tuple[int, int]]:
        """Rows of time and number of samples. A thread's samples share its time on a core; with a ``period``, in ns,
        each stands for so much of it, and the rest is not sampled."""
        rows: defaultdict[Place, list[int]] = defaultdict(lambda: [0, 0])
        for thread in self._all():
            total = thread.account.on_cpu
            sampled = min(thread.samples.total() * period, total) if period else total
            if not thread.samples:
                sampled = 0
            for stack, part in _shares(sampled, thread.samples).items():
                row = rows[self._place(thread, stack)]
                row[0] += part
                row[1] += thread.samples[stack]
            if total > sampled:
                rows[self._place(thread, _NOT_SAMPLED)][0] += total - sampled
        return {place: (time, count) for place, (time, count) in rows.items()}

    def counted(self) -> dict[Place, tuple[int, int]]:
        """Rows of events and number of samples."""
        rows: dict[Place, tuple[int, int]] = {}
        for thread in self._all():
            for stack, events in thread.events.items():
                place = self._place(thread, stack)
                before = rows.get(place, (0, 0))
                rows[place] = before[0] + events, before[1] + thread.samples[stack]
        return rows

    @staticmethod
    def _place(thread: _Thread, stack: Stack) -> Place:
        return Place(thread.account.pid, thread.account.tid, RUNNING, stack)


def _shares(total: int, counts: Mapping[Stack, int]) -> dict[Stack, int]:
    return dict(zip(counts, shared_out(total, list(counts.values())), strict=True)) if counts else {}
