"""Calls and locks for which several wait at the same time: how many times as long a wait takes because of that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..base.text import json_text
from ..base.units import duration, plural, share
from ..facts import thresholds
from ..model.file_locks import FileLock
from ..model.locks import OTHER_LOCKS, LockTimes
from ..phrases.locks import title
from ..summary.sharing import Shared

CALL, LOCK, FILE_LOCK = KINDS = ("call", "lock", "file lock")


@dataclass(frozen=True, slots=True)
class Contended:
    """One call, or one lock. Times in ns; names are unescaped (hostile)."""

    kind: str
    """One of `KINDS`."""
    name: str
    """Words for it."""
    time: int
    """Time of all waits for a lock, and of all that is spent inside of a call; of a lock on a file, by the looks at
    which somebody waited."""
    count: int
    """Number of waits, or of calls; 0 if it is not known."""
    waiters: int
    """Threads that waited for a lock; processes inside of a call, or that waited for a lock on a file."""
    alone: float | None
    """Mean of those with nobody else at the same time; None if there were too few."""
    with_others: float | None
    """Mean of all others; None if there were none."""
    inside: float | None
    """Number of those that wait, or are inside, while one is: the mean. Of a queue in which one is served after the
    other it is also a wait in terms of a turn (J. Little, 1961)."""

    @property
    def factor(self) -> float | None:
        """Number of times that one takes longer with others than alone; than its turn, if that is not known."""
        return self.with_others / self.alone if self.alone and self.with_others else self.inside

    @property
    def known_alone(self) -> bool:
        """Whether the factor compares with what is alone."""
        return bool(self.alone and self.with_others)

    def to_json(self) -> dict[str, Any]:
        """Plain data: null for what is not known."""
        return {
            "kind": self.kind,
            "name": json_text(self.name),
            "time_ns": self.time,
            "count": self.count or None,
            "waiters": self.waiters,
            "alone_mean_ns": None if self.alone is None else round(self.alone),
            "with_others_mean_ns": None if self.with_others is None else round(self.with_others),
            "factor": self.factor and round(self.factor, 3),
            "known_alone": self.known_alone,
            "mean_inside": self.inside and round(self.inside, 3),
        }


def contended(
    shared: Sequence[Shared], locks: Sequence[LockTimes], files: Sequence[FileLock], trace: int
) -> tuple[Contended, ...]:
    """Calls and locks of which a factor is known, the longest time first. ``trace``: ns."""
    found = [*map(_call, shared), *_locks(locks), *_files(files, trace)]
    return tuple(sorted((each for each in found if each.factor), key=lambda each: (-each.time, each.kind, each.name)))[
        : thresholds.CONTENDED_KEPT
    ]


def lines(found: Iterable[Contended], trace: int) -> list[str]:
    """Sentences on locks for which the waits are that much longer because others wait, too: ``trace``: ns. Unescaped
    (hostile). Calls that serialise have sentences of their own."""
    told = [each for each in found if _matters(each, trace)]
    return [_line(each, trace) for each in told[: thresholds.CONTENDED_ROWS]]


def _matters(each: Contended, trace: int) -> bool:
    return (
        each.kind != CALL
        and each.factor is not None
        and each.factor >= thresholds.SERIALISES
        and each.time >= thresholds.LOCK_CONTENDED * trace
    )


def _line(each: Contended, trace: int) -> str:
    if each.kind == FILE_LOCK:
        part = share(each.time, round((each.inside or 1) * trace))
        return (
            f"{_capital(each.name)}: {plural(each.waiters, 'process')} waited, one at least for {part} of the time, "
            f"{each.inside:.1f} at a time."
        )
    told = f"{_capital(each.name)}: {plural(each.waiters, 'thread')} waited {duration(each.time)}"
    told += f", {each.inside:.1f} at a time" if each.inside else ""
    return (
        f"{told}; with others a wait takes {each.factor:.1f} times as long as alone."
        if each.known_alone
        else f"{told}."
    )


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _call(each: Shared) -> Contended:
    call = each.call
    with_others = call.with_others_mean if each.known_alone else None
    return Contended(
        CALL,
        f"{call.name} on {call.device}",
        call.inside,
        call.count,
        len(each.each),
        call.alone_time / call.alone if each.known_alone else None,
        with_others,
        call.mean_inside or None,
    )


def _locks(locks: Sequence[LockTimes]) -> Iterator[Contended]:
    """Locks with waits at the same time, but for what waits for no lock at all."""
    for lock in locks:
        if lock.is_contention is False or lock.name == OTHER_LOCKS or lock.judged <= lock.alone:
            continue
        knows = lock.alone >= thresholds.ALONE_CALLS and lock.alone_time > 0
        yield Contended(
            LOCK,
            title(lock),
            lock.time,
            lock.waits,
            len(lock.waiters) + lock.more_waiters,
            lock.alone_time / lock.alone if knows else None,
            lock.with_others_mean,
            lock.mean_waiting,
        )


def _files(files: Sequence[FileLock], trace: int) -> Iterator[Contended]:
    """Locks on files for which several waited at a time. How long a single wait takes is not known."""
    by_lock: dict[tuple[str, int, int, int], list[FileLock]] = {}
    for each in files:
        by_lock.setdefault((each.kind, each.device, each.inode, each.first), []).append(each)
    for waits in by_lock.values():
        first = max(waits, key=lambda each: (each.busy, bool(each.path)))
        if first.busy < thresholds.LOOKS or first.waiting <= first.busy:
            continue
        path = next((each.path for each in waits if each.path), f"inode {first.inode} on {first.device_numbers}")
        whole = max(each.looks for each in waits)
        time = round(trace * min(first.busy / whole, 1.0) * first.waiting / first.busy) if whole else 0
        pids = len({each.pid for each in waits})
        inside = first.waiting / first.busy
        yield Contended(FILE_LOCK, f"lock on {path} ({first.kind})", time, 0, pids, None, None, inside)
