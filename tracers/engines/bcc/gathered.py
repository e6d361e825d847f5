"""Waits, samples, stacks and accounts that were read from the kernel's tables so far, within bounds."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter as Numbers
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ....converters.model.losses import time_of
from ....converters.model.states import BLOCKED, WOKEN
from ....converters.model.states import PREEMPTED as PREEMPTED_STATE
from ..named_rows import Account, shared_out
from .layouts import LOST_STACK, NEW, OTHER, PREEMPTED, KernelAccount, KernelPlace, Phase, WaitSum, state_name
from .tables import Read

OTHER_STACK = LOST_STACK - 1
"""Stands for the stacks that were too many."""
_MOST_STACKS = 1 << 18
_MOST_ROWS = 1 << 18
_MOST_ENDED = 1 << 16
_NSEC = 1_000_000_000


class Filter(NamedTuple):
    """Filter of waits by length in ns and state (None: all)."""

    shortest: int = 0
    longest: int = (1 << 64) - 1
    states: frozenset[str] | None = None


class Wait(NamedTuple):
    """A row of waits. ``values``: time, number, shortest and longest, in ns."""

    place: KernelPlace
    state: str
    values: tuple[int, int, int, int]
    is_open: bool = False


@dataclass
class Gathered:
    """Takes in tables; `finish` closes the accounts at the end of the trace."""

    letters: dict[int, str]
    """Letters of states, by bit of prev_state."""
    wanted: Filter = field(default_factory=Filter)
    stacks: dict[int, bytes] = field(default_factory=dict)
    """Addresses by id."""
    accounts: list[Account] = field(default_factory=list)
    """Accounts of the threads that have ended, and after `finish` of all."""
    names: dict[int, str] = field(default_factory=dict)
    """Names of threads that have ended, by tid."""
    lost: Numbers[str] = field(default_factory=Numbers)
    """Number of entries that there was no room for here, by kind."""
    _waits: dict[KernelPlace, WaitSum] = field(default_factory=dict)
    _samples: Numbers[KernelPlace] = field(default_factory=Numbers)
    _open: list[tuple[KernelPlace, WaitSum]] = field(default_factory=list)

    def take(self, read: Read) -> None:
        """Adds what was read."""
        for number, addresses in read.stacks:
            if number in self.stacks or len(self.stacks) < _MOST_STACKS:
                self.stacks[number] = addresses
        kept = set(self.stacks)
        for place, wait in read.waits:
            where = self._where(place, self._waits, kept)
            if where is None:
                self.lost["intervals"] += wait.number
                self.lost[time_of("intervals")] += wait.blocked + wait.runnable
            else:
                self._waits[where] = self._waits[where].plus(wait) if where in self._waits else wait
        for place, number in read.samples:
            where = self._where(place, self._samples, kept)
            if where is None:
                self.lost["samples"] += number
            else:
                self._samples[where] += number
        for tid, account in read.ended:
            if len(self.accounts) >= _MOST_ENDED:
                self.lost["threads"] += 1
                continue
            self.accounts.append(self._account(tid, account, account.end))
            self.accounts[-1].exited = True
            self.names[tid] = account.comm.decode("utf-8", "surrogateescape")

    def _where(self, place: KernelPlace, rows: Mapping[KernelPlace, object], kept: set[int]) -> KernelPlace | None:
        """The row to which this belongs; None if there are too many."""
        if place in rows:
            return place
        if len(kept) >= _MOST_STACKS and not {place.ustack, place.kstack} <= kept | {0, LOST_STACK}:
            place = place._replace(ustack=OTHER_STACK, kstack=0)
        if len(rows) < _MOST_ROWS or place in rows:
            return place
        place = place._replace(ustack=OTHER_STACK, kstack=0)
        return place if place in rows or len(rows) < 2 * _MOST_ROWS else None

    def finish(self, living: Mapping[int, KernelAccount], ended: int, letter_of: Callable[[int], str]) -> None:
        """The trace has ended at ``ended``, ns. ``living``: accounts by tid; ``letter_of``: states of proc(5)."""
        for tid, account in living.items():
            letter = letter_of(tid) if account.phase == Phase.UNKNOWN else ""
            if account.phase == Phase.UNKNOWN and not letter:
                continue  # it had ended before it was taken in
            self._close(tid, account, max(ended, account.since), letter)

    def _close(self, tid: int, account: KernelAccount, end: int, letter: str) -> None:
        made, last = self._account(tid, account, end), end - account.since
        phase = Phase(account.phase)
        if phase == Phase.UNKNOWN:
            phase = Phase.ON_CPU if letter == "R" else Phase.BLOCKED
        if phase == Phase.ON_CPU:
            made.on_cpu += last
        elif phase == Phase.RUNNABLE:
            made.runnable += last
        else:
            made.blocked[self._state(account.state)] += last
        self.accounts.append(made)
        whole = end - account.out
        if phase == Phase.ON_CPU or not self.wanted.shortest <= whole <= self.wanted.longest:
            return
        blocked = whole if phase == Phase.BLOCKED else account.woken - account.out if account.woken else 0
        place = KernelPlace(account.ustack, account.kstack, account.life, tid, account.tgid, account.state)
        rest = whole - blocked
        self._open.append((place, WaitSum(1, blocked, blocked, blocked, rest, rest, rest)))

    def _account(self, tid: int, account: KernelAccount, end: int) -> Account:
        blocked: Numbers[str] = Numbers()
        for index, time in enumerate(account.blocked):
            if time:
                blocked[self._state(index)] += time
        return Account(
            account.tgid, tid, account.start, end, account.on_cpu, account.runnable, blocked, account.switches
        )

    def _state(self, index: int) -> str:
        name = state_name(index, self.letters)
        return name if name in BLOCKED else BLOCKED[-1]

    def waits(self) -> Iterator[Wait]:
        """All rows: a wait has one for the time until it was woken, and one for the time until it ran."""
        for waits, is_open in ((self._waits.items(), False), (self._open, True)):
            for place, total in waits:
                for state, values in self._parts(place.state, total):
                    if self.wanted.states is None or state in self.wanted.states:
                        yield Wait(place, state, values, is_open)

    def _parts(self, index: int, total: WaitSum) -> Iterator[tuple[str, tuple[int, int, int, int]]]:
        runnable = (total.runnable, total.number, total.runnable_min, total.runnable_max)
        if index in (PREEMPTED, NEW):
            yield PREEMPTED_STATE if index == PREEMPTED else WOKEN, runnable
            return
        yield self._state(index), (total.blocked, total.number, total.blocked_min, total.blocked_max)
        if total.runnable:
            yield WOKEN, runnable

    def running(self, frequency: int) -> dict[KernelPlace, tuple[int, int]]:
        """Time and number of samples by place: samples share a thread's time on a core. Of a thread whose account was
        lost, each stands for the time between two. What no sample shows has the stack 0."""
        by_tid: dict[int, list[Account]] = {}
        for account in sorted(self.accounts, key=lambda each: each.began):
            by_tid.setdefault(account.tid, []).append(account)
        groups: dict[int, list[KernelPlace]] = {}
        rows: dict[KernelPlace, tuple[int, int]] = {}
        for place, number in self._samples.items():
            known = by_tid.get(place.tid, [])
            found = bisect_right(known, place.life, key=lambda each: each.began) - 1
            if found < 0:
                rows[place] = number * _NSEC // frequency, number
            else:
                groups.setdefault(id(known[found]), []).append(place)
        for account in self.accounts:
            places = groups.get(id(account), [])
            numbers = [self._samples[place] for place in places]
            for place, part, number in zip(places, shared_out(account.on_cpu, numbers), numbers, strict=True):
                rows[place] = part, number
            if account.on_cpu and not places:
                rows[KernelPlace(0, 0, account.began, account.tid, account.pid, OTHER)] = account.on_cpu, 0
        return rows
