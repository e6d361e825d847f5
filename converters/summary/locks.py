"""Locks that threads waited for: how much contention there is, and for whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..base.text import json_text
from ..base.units import plural, share
from ..model import ThreadTimes
from ..model.locks import FUTEX, KERNEL, SHARED, WAKER, LockThread, LockTimes

CONVOY_NS, CONVOY_WAITS = 100_000_000, 20
"""A lock is said to have a convoy if for so long somebody always waited for it, with so many waits."""

_MATTERS = 0.2
"""A lock is worth a sentence if those who wait for it do for this share of their time."""
_MOSTLY = 0.5
"""Somebody is named if he has it for this share of the waits."""
_FEW = 10
"""Threads of his process are meant that have it for 1/this of that."""
_UNNAMED = ("0x", "#", "in ")
"""Beginnings of names of the kernel's locks that tell neither a variable nor a type."""


def is_convoy(lock: LockTimes) -> bool:
    """Whether there was a queue for it that did not empty."""
    return lock.is_contention is not False and lock.queue >= CONVOY_NS and lock.queue_waits >= CONVOY_WAITS


def ranked(locks: Sequence[LockTimes]) -> list[LockTimes]:
    """Those whose waits are contention first, then those of which it is not known; most time first."""
    order = {True: 0, None: 1, False: 2}
    return sorted(locks, key=lambda lock: (order[lock.is_contention], -lock.time))


def title(lock: LockTimes) -> str:
    """Which lock it is. Names are unescaped (hostile)."""
    kind = f"{lock.kind}, or another kind of wait," if lock.kind == FUTEX else lock.kind
    kind += " (used as a lock)" if lock.is_lock_like else ""
    if lock.owned_by == KERNEL:
        told = f"kernel's {kind} {lock.name}" + (f" of {lock.process} ({lock.pid})" if lock.pid else "")
        return f"{told}, taken in {lock.taken_in}" if lock.taken_in and lock.name.startswith(_UNNAMED) else told
    if lock.owned_by == SHARED:
        return f"{kind} {lock.name} of several processes"
    return f"{kind} {lock.name} of {lock.process} ({lock.pid})"


def holder_sentence(
    locks: Sequence[LockTimes],
    threads: Iterable[ThreadTimes],
    does: Callable[[Iterable[tuple[int, int]]], str] = lambda _: "",
) -> str:
    """Who has the lock that is waited for most, if the lock itself told, and if it matters; else "". ``threads``: all
    that were traced; ``does``: the end of the sentence, on threads by pid and tid. Names are unescaped (hostile)."""
    lock = next(iter(ranked(locks)), None)
    if not lock or not lock.is_contention:
        return ""
    walls = {(times.pid, times.tid): times.wall for times in threads}
    wall = sum(walls.get((thread.pid, thread.tid), 0) for thread in lock.waiters)
    times: Counter[tuple[str, int]] = Counter()
    for holder in lock.holders:
        if holder.source != WAKER:
            times[holder.process, holder.pid] += holder.time
    (process, pid), most = max(times.items(), key=lambda entry: (entry[1], entry[0]), default=(("", 0), 0))
    if not wall or lock.time < _MATTERS * wall or most < _MOSTLY * lock.time:
        return ""
    threads_of = [of for of in lock.holders if of.pid == pid and of.source != WAKER]
    having = [(of.pid, of.tid) for of in threads_of if of.time * _FEW >= most]
    if {thread.pid for thread in lock.waiters} == {pid} and threads_of[0].time >= _MOSTLY * lock.time:
        most, whom = threads_of[0].time, f"its thread {threads_of[0].thread} (tid {threads_of[0].tid})"
        having = having[:1]
    else:
        whom = f"{process} (pid {pid}{'' if any(of == pid for of, _ in walls) else ', not traced'})"
    number = len(lock.waiters) + lock.more_waiters
    whose, wait = ("its", "waits") if number == 1 else ("their", "wait")
    return (
        f"For {share(lock.time, wall)} of {whose} time, {plural(number, 'thread')} {wait} for the {title(lock)}: "
        f"{share(most, lock.time)} of that while {whom} has it{does(having)}."
    )


def lock_json(lock: LockTimes) -> dict[str, Any]:
    """Times in ns."""
    return {
        "name": json_text(lock.name),
        "kind": lock.kind,
        "owned_by": lock.owned_by,
        "process": json_text(lock.process),
        "pid": lock.pid,
        "contention": lock.is_contention,
        "taken_in": json_text(lock.taken_in),
        "time_ns": lock.time,
        "waits": lock.waits,
        "mean_ns": lock.time // lock.waits if lock.waits else 0,
        "max_ns": lock.max,
        "open_count": lock.open_count,
        "queue_ns": lock.queue,
        "queue_waits": lock.queue_waits,
        "convoy": is_convoy(lock),
        "waiters": [_thread_json(thread) for thread in lock.waiters],
        "more_waiters": lock.more_waiters,
        "holders": [
            {**_thread_json(thread), "known_by": thread.source, "frames": [json_text(frame) for frame in thread.frames]}
            for thread in lock.holders
        ],
        "places": [
            {"frames": [json_text(frame) for frame in place.frames], "time_ns": place.time, "waits": place.waits}
            for place in lock.places
        ],
    }


def _thread_json(thread: LockThread) -> dict[str, Any]:
    return {
        "process": json_text(thread.process),
        "thread": json_text(thread.thread),
        "pid": thread.pid,
        "tid": thread.tid,
        "time_ns": thread.time,
        "waits": thread.waits,
    }
