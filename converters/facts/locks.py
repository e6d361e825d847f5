"""Locks that threads waited for: how much contention there is, and for whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.text import json_text
from ..model.locks import LockThread, LockTimes
from . import thresholds


def is_convoy(lock: LockTimes) -> bool:
    """Whether there was a queue for it that did not empty."""
    is_long = lock.queue >= thresholds.CONVOY_TIME and lock.queue_waits >= thresholds.CONVOY_WAITS
    return lock.is_contention is not False and is_long


def ranked(locks: Sequence[LockTimes]) -> list[LockTimes]:
    """Locks whose waits are contention first, then those of which it is not known; most time first."""
    order = {True: 0, None: 1, False: 2}
    return sorted(locks, key=lambda lock: (order[lock.is_contention], -lock.time))


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
        "alone_count": lock.alone,
        "alone_mean_ns": lock.alone_time // lock.alone if lock.alone else None,
        "with_others_count": lock.judged - lock.alone,
        "with_others_mean_ns": round(lock.with_others_mean) if lock.judged > lock.alone else None,
        "factor": lock.factor,
        "mean_waiting": lock.mean_waiting,
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
