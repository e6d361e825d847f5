"""Samples of threads, added up to shares of their time.

/proc/TID/schedstat has the time of a thread on a core, and waiting for one: the samples divide it, and the rest, in
which the thread was blocked, among their stacks. Each sample counts for the time since the one before it. The kernel
counts the time in which eu-stack held the thread as blocked: that time has a row of its own.

The times are read far more often than stacks are taken. A thread that began during the trace is met with the times of
its whole life. One that has ended is known up to the last look at it: the time between that look and the next one is
counted as lost.
"""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from ....converters.model import Frame, Stack
from ....converters.model.states import BLOCKED, BY_LETTER, OTHER, RUNNING, TRACED, WOKEN
from ...base import procfs
from ..named_rows import NOT_SAMPLED, OTHER_STACKS, Account, Place, shared_out
from . import looks

_NOT_SAMPLED: Stack = (Frame(NOT_SAMPLED, "other"),)
_STOPPED: Stack = (Frame("[stopped by eu-stack]", "other"),)
_OTHERS: Stack = (Frame(OTHER_STACKS, "other"),)
_MOST_THREADS = 1 << 16
_MOST_KEPT = 128 << 20
"""Bytes of distinct stacks, about: who writes into eu-stack's output can make each sample a new one."""
_FRAME = 200
"""Bytes of a frame without its names, about."""
_ENDING = ("X", "x", "Z", "")
_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
"""ns: the unit of the moment at which a thread began, in /proc/TID/stat."""
_RENAMED = 500_000_000
"""ns after which names are read again; sooner if the thread is young."""
_SUSPENDED = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()
_RUNS = "runs"
_STATES = {looks.RUNS: _RUNS, looks.WOKEN: WOKEN}


@dataclass
class _Thread:
    """``weights``: ns by state (`_RUNS` for those on a core, or waiting for one) and stack; ``samples``: their number.
    ``first`` and ``last``: of schedstat, at ``began`` and at ``seen``. ``stopped``: ns that eu-stack held it.
    ``start``: when the kernel says that it began. ``unknown``: ns between the last look and the one that missed it."""

    pid: int
    tid: int
    start: int
    began: int
    seen: int
    first: tuple[int, int]
    last: tuple[int, int]
    named: int
    stopped: int = 0
    weights: Counter[tuple[str, Stack]] = field(default_factory=Counter)
    samples: Counter[tuple[str, Stack]] = field(default_factory=Counter)
    exited: bool = False
    unknown: int = 0
    is_complete: bool = False
    """Whether it was looked at after its end: its time on cores is all of it."""
    created: bool = False
    """Whether it was not there when its process was looked at first."""


class Threads:
    """Times in ns of one clock, that of `time.monotonic_ns`."""

    def __init__(self, began: int) -> None:
        self.began = began
        self.names: dict[int, str] = {}
        self.left_out = 0
        """Threads that were too many."""
        self.stacks: dict[Stack, Stack] = {}
        self._kept = 0
        """Bytes of these stacks."""
        self.put_together = 0
        """Samples of stacks that were too many."""
        self._threads: dict[int, _Thread] = {}
        """The last one that had each tid."""
        self._earlier: list[_Thread] = []
        """Threads whose tids others got after them."""
        self._living: dict[int, set[int]] = {}
        """tids by pid."""
        self._pids: set[int] = set()

    @property
    def pids(self) -> set[int]:
        """Processes of which threads were there at the last look."""
        return set(self._living)

    def look(self, pid: int, now: int) -> None:
        """Notes which threads the process has, and their times."""
        is_known = pid in self._pids
        self._pids.add(pid)
        before = self._living.pop(pid, set())
        here = set()
        # The list of /proc may be cut short when a thread ends meanwhile.
        for tid in {*procfs.tids(pid), *before}:
            times = procfs.schedstat(pid, tid)
            thread = self._threads.get(tid)
            if times is None:
                if thread and tid in before:
                    _end(thread, now)
                continue
            # The main thread is there after its end, until all others and the parent have seen it.
            is_zombie = tid == pid and procfs.state(tid) in _ENDING
            if thread is None or (thread.exited and started(pid, tid) != thread.start):
                thread = None if is_zombie else self._met(pid, tid, times, now)
                if thread:
                    thread.created = is_known
            if thread is None or thread.exited:
                continue
            if is_zombie:
                thread.seen = min(now, thread.seen + max(sum(times) - sum(thread.last), 0))
                thread.last = times
                thread.is_complete = True
                _end(thread, now)
                self.rename(pid, tid)
                continue
            here.add(tid)
            thread.seen, thread.last = now, times
            if now - thread.named >= min(thread.named - thread.began, _RENAMED):
                thread.named = now
                self.rename(pid, tid)
        if here:
            self._living[pid] = here

    def rename(self, pid: int, tid: int) -> None:
        """Reads the thread's name again."""
        self.names[tid] = procfs.comm(pid, tid) or self.names.get(tid, "")

    def _met(self, pid: int, tid: int, times: tuple[int, int], now: int) -> _Thread | None:
        """A thread that was not there before; None if there are too many."""
        if len(self._threads) + len(self._earlier) >= _MOST_THREADS:
            self.left_out += 1
            return None
        if tid in self._threads:
            self._earlier.append(self._threads[tid])
        start = started(pid, tid)
        if now <= self.began or start + _TICK <= self.began:
            made = _Thread(pid, tid, start, now, now, times, times, now)
        else:
            # It ran at least as long as it was on cores, and waited for one.
            began = min(max(start, self.began), now - sum(times))
            began = max(began, self.began)
            made = _Thread(pid, tid, start, began, now, (0, 0), times, began)
        self._threads[tid] = made
        return made

    @property
    def unseen_ends(self) -> list[int]:
        """Nanoseconds between the two looks, for each thread that ended between them."""
        return [each.unknown for each in (*self._earlier, *self._threads.values()) if each.unknown]

    @property
    def ended_on_cpu(self) -> int:
        """ns that the threads of processes that have ended had on cores, at most: with the time between the last look
        at a thread and its end."""
        threads = [each for each in (*self._earlier, *self._threads.values()) if each.pid not in self._living]
        return sum(each.last[0] - each.first[0] + (0 if each.is_complete else each.unknown) for each in threads)

    def sample(self, tid: int, letter: str, stack: Stack, weight: int) -> None:
        """The thread was in this state in this stack, a letter of `looks`; ``weight``: ns since the sample before."""
        thread = self._threads.get(tid)
        if thread is None or letter in _ENDING:
            return
        state = _STATES.get(letter) or BY_LETTER.get(letter, OTHER)
        key = state, self._known(stack)
        thread.weights[key] += weight
        thread.samples[key] += 1

    def _known(self, stack: Stack) -> Stack:
        known = self.stacks.get(stack)
        if known is None:
            size = sum(_FRAME + len(each.name) + len(each.module.path if each.module else "") for each in stack)
            if self._kept + size > _MOST_KEPT:
                self.put_together += 1
                return _OTHERS
            self._kept += size
            known = self.stacks[stack] = stack
        return known

    def stop(self, tid: int, time: int) -> None:
        """eu-stack has held the thread for so many ns."""
        if thread := self._threads.get(tid):
            thread.stopped += time

    def finish(self, now: int) -> tuple[list[Account], dict[Place, list[int]]]:
        """The accounts, and rows of time and number of samples."""
        rows: defaultdict[Place, list[int]] = defaultdict(lambda: [0, 0])
        accounts = []
        for thread in (*self._earlier, *self._threads.values()):
            end = thread.seen if thread.exited else now
            wall = end - thread.began
            on_cpu = min(max(thread.last[0] - thread.first[0], 0), wall)
            runnable = min(max(thread.last[1] - thread.first[1], 0), wall - on_cpu)
            account = Account(thread.pid, thread.tid, thread.began, end, on_cpu, runnable, exited=thread.exited)
            account.created = thread.created
            accounts.append(account)
            self._divide(thread, account, wall - on_cpu - runnable, rows)
        return accounts, dict(rows)

    def _divide(self, thread: _Thread, account: Account, blocked: int, rows: defaultdict[Place, list[int]]) -> None:
        def add(state: str, stack: Stack, time: int, samples: int) -> None:
            if time:
                row = rows[Place(account.pid, account.tid, state, stack)]
                row[0] += time
                row[1] += samples
                if state in BLOCKED:
                    account.blocked[state] += time

        def divide(total: int, states: Collection[str], otherwise: str) -> None:
            """Divides a total among the samples of these states. Those of `_RUNS` are counted where the thread was on a
            core."""
            weights = {key: weight for key, weight in thread.weights.items() if key[0] in states}
            if not weights:
                add(otherwise, _NOT_SAMPLED, total, 0)
                return
            for (state, stack), part in zip(weights, shared_out(total, list(weights.values())), strict=True):
                samples = 0 if state == _RUNS and otherwise == WOKEN else thread.samples[state, stack]
                add(otherwise if state == _RUNS else state, stack, part, samples)

        stopped = min(thread.stopped, blocked)
        add(TRACED, _STOPPED, stopped, 0)
        divide(account.on_cpu, (_RUNS,), RUNNING)
        divide(account.runnable, (_RUNS, WOKEN), WOKEN)
        divide(blocked - stopped, BLOCKED, OTHER)


def _end(thread: _Thread, now: int) -> None:
    thread.exited = True
    thread.unknown = now - thread.seen


def started(pid: int, tid: int) -> int:
    """Time when the thread began, in ns of `time.monotonic_ns`, cut to a tick of 10 ms; 0 when it is gone."""
    ticks = procfs.began(pid, tid)
    # The kernel counts from its start, with the time in which it was suspended.
    return ticks * _TICK - _SUSPENDED if ticks is not None else 0
