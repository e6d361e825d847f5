"""Corrections where events were lost: perf's reports alone would show a thread as running, or waiting, whose switches
were lost. The kernel's own count (/proc/PID/task/TID/schedstat) says how much of each there was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from ....converters.model import Frame, Stack
from ....converters.model.states import OTHER, PREEMPTED
from ..named_rows import LOST, Account, shared_out
from .delays import OnCore

Rows = dict[tuple[int, int, str, Stack, bool], list[int]]
"""Time, number, shortest and longest of waits by process, thread, state, stack, and whether they go on."""
_LOST: Stack = (Frame(LOST, "other"),)
_LEAST, _LATE, _OF = 1_000_000, 20_000_000, 50
"""ns that a difference has at least; the same where the kernel's count may be as old as a tick; and the least part of
what was reported, one in so many."""


class Counted(NamedTuple):
    """A thread; what was counted of its time on a core; and by how many ns perf's reports of its waits for one, after
    preemptions, exceed what the kernel counted."""

    account: Account
    on_core: OnCore
    preempted: int


def correct(threads: Iterable[Counted], rows: Rows, *, shows_lost: bool = True) -> None:
    """Puts the accounts right, with the rows of waits; ``shows_lost``: lost time has rows, too. What the kernel counted
    as neither is lost time; what is missing on cores had been taken for waits."""
    keys = defaultdict(list)
    for key in rows:
        keys[key[1]].append(key)
    for account, count, preempted in threads:
        own, on_core, least = keys[account.tid], count.too_much, _LATE if count.is_late else _LEAST
        if _is_large(on_core, account.on_cpu, least):
            on_core = min(on_core, account.on_cpu)
            account.on_cpu -= on_core
            _lose(account, on_core, rows if shows_lost else {})
        if _is_large(preempted, account.runnable, least):
            preempted = min(preempted, account.runnable)
            account.runnable -= preempted
            _take(rows, [key for key in own if key[2] == PREEMPTED], preempted, account.runnable + preempted)
            _lose(account, preempted, rows if shows_lost else {})
        if _is_large(-on_core, account.on_cpu, least):
            _take_from_waits(account, min(-on_core, account.blocked.total()), rows, own)


def _is_large(difference: int, reported: int, least: int) -> bool:
    return difference >= max(least, reported // _OF)


def _lose(account: Account, time: int, rows: Rows) -> None:
    """Adds so much time of a thread as not known."""
    account.blocked[OTHER] += time
    row = rows.setdefault((account.pid, account.tid, OTHER, _LOST, False), [0, 0, time, 0])
    row[0] += time
    row[1] += 1
    row[2], row[3] = min(row[2], time), max(row[3], time)


def _take_from_waits(account: Account, time: int, rows: Rows, keys: list[tuple[int, int, str, Stack, bool]]) -> None:
    """Moves so much of a thread's waits to a core."""
    states = [state for state, blocked in account.blocked.items() if blocked > 0]
    parts = shared_out(time, [account.blocked[state] for state in states]) if states else []
    for state, part in zip(states, parts, strict=True):
        _take(rows, [key for key in keys if key[2] == state], part, account.blocked[state])
        account.blocked[state] -= part
    account.on_cpu += time


def _take(rows: Rows, keys: list[tuple[int, int, str, Stack, bool]], part: int, whole: int) -> None:
    """Takes from rows of a thread and a state, which have ``whole`` ns or, if some waits were not wanted, less, what
    corresponds to ``part`` of it."""
    times = [rows[key][0] for key in keys]
    if not sum(times) or not whole:
        return
    for key, less in zip(keys, shared_out(part * sum(times) // whole, times), strict=True):
        rows[key][0] -= less
        rows[key][2] = min(rows[key][2], rows[key][0])
        rows[key][3] = min(rows[key][3], rows[key][0])
