"""Samples of threads, added up to shares of their time.

/proc/TID/schedstat has the time of a thread on a core, and waiting for one: the samples divide it, and the rest, in
which the thread was blocked, among their stacks. Each sample counts for the time since the one before it. The kernel
counts the time in which eu-stack held the thread as blocked: that time has a row of its own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from ....converters.model import Frame, Stack
from ....converters.model.states import BLOCKED, BY_LETTER, OTHER, RUNNING, TRACED, WOKEN
from ...base import procfs
from ..taken import NOT_SAMPLED, Account, Place, shared_out
from . import looks

_NOT_SAMPLED: Stack = (Frame(NOT_SAMPLED, "other"),)
_STOPPED: Stack = (Frame("[stopped by eu-stack]", "other"),)
_MOST_THREADS = 1 << 16
_ENDING = ("X", "x", "Z", "")
_RUNS = "runs"
_STATES = {looks.RUNS: _RUNS, looks.WOKEN: WOKEN}


@dataclass
class _Thread:
    """``weights``: ns by state (`_RUNS` for those on a core, or waiting for one) and stack; ``samples``: their number.
    ``first`` and ``last``: of schedstat, at ``began`` and at ``seen``. ``stopped``: ns that eu-stack held it."""

    pid: int
    began: int
    seen: int
    first: tuple[int, int]
    last: tuple[int, int]
    stopped: int = 0
    weights: Counter[tuple[str, Stack]] = field(default_factory=Counter)
    samples: Counter[tuple[str, Stack]] = field(default_factory=Counter)
    exited: bool = False
    created: bool = False
    """It was not there when its process was looked at first."""


class Threads:
    """Times in ns of one clock."""

    def __init__(self, began: int) -> None:
        self.began = began
        self.names: dict[int, str] = {}
        self.left_out = 0
        """Threads that were too many."""
        self.stacks: dict[Stack, Stack] = {}
        self._threads: dict[int, _Thread] = {}
        self._pids: set[int] = set()

    def look(self, pid: int, now: int) -> None:
        """Notes which threads the process has, and their times."""
        is_known = pid in self._pids
        self._pids.add(pid)
        for tid in procfs.tids(pid):
            times = schedstat(pid, tid)
            if times is None:
                continue
            thread = self._threads.get(tid)
            if thread is None:
                if len(self._threads) >= _MOST_THREADS:
                    self.left_out += 1
                    continue
                thread = self._threads[tid] = _Thread(pid, now, now, times, times, created=is_known)
            thread.seen, thread.last = now, times
            self.names[tid] = procfs.comm(pid, tid) or self.names.get(tid, "")

    def sample(self, tid: int, letter: str, stack: Stack, weight: int) -> None:
        """The thread was in this state in this stack, a letter of `looks`; ``weight``: ns since the sample before."""
        thread = self._threads.get(tid)
        if thread is None or letter in _ENDING:
            return
        state = _STATES.get(letter) or BY_LETTER.get(letter, OTHER)
        key = state, self.stacks.setdefault(stack, stack)
        thread.weights[key] += weight
        thread.samples[key] += 1

    def stop(self, tid: int, time: int) -> None:
        """eu-stack has held the thread for so many ns."""
        if thread := self._threads.get(tid):
            thread.stopped += time

    def finish(self, now: int) -> tuple[list[Account], dict[Place, list[int]]]:
        """The accounts, and rows of time and number of samples."""
        rows: defaultdict[Place, list[int]] = defaultdict(lambda: [0, 0])
        accounts = []
        for tid, thread in self._threads.items():
            thread.exited = procfs.state(tid) in _ENDING
            end = thread.seen if thread.exited else now
            wall = end - thread.began
            on_cpu = min(max(thread.last[0] - thread.first[0], 0), wall)
            runnable = min(max(thread.last[1] - thread.first[1], 0), wall - on_cpu)
            account = Account(thread.pid, tid, thread.began, end, on_cpu, runnable, exited=thread.exited)
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
            """Among the samples of these states. Those of `_RUNS` are counted where the thread was on a core."""
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


def schedstat(pid: int, tid: int) -> tuple[int, int] | None:
    """ns on a core and ns waiting for one; None when the thread is gone."""
    try:
        with open(f"/proc/{pid}/task/{tid}/schedstat", "rb") as file:
            words = file.read(256).split()
    except OSError:
        return None
    return (int(words[0]), int(words[1])) if len(words) > 1 else None
