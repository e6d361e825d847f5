"""Profiles with slices made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stallscope.converters.facts.slices import Series, phases_of, series_of
from stallscope.converters.model import Profile
from stallscope.converters.model.slices import SliceSpent, ThreadSlices
from stallscope.converters.scan.over_time import WEIGHTS
from summary_profiles import SECOND, Tracee, empty
from verdict_profiles import FSYNC, LOCK

Shares = Mapping[str, Sequence[float]]
"""Parts of slices, by kind."""
LOADS, TAKES = ("main", "load", "read"), ("main", "take_lock", "pthread_mutex_lock")


def slices(shares: Shares, pid: int = 1, tid: int = 1, first: int = 0, length: int = SECOND) -> ThreadSlices:
    """Slices of a thread of ``app``, with these parts of each."""
    places = {"io": LOADS, "lock": TAKES}
    spent = [
        SliceSpent(kind, tuple(round(part * length) for part in parts), places.get(kind, ()))
        for kind, parts in shares.items()
    ]
    return ThreadSlices("app", "app", pid, tid, length, first, spent)


def series(shares: Shares, **more: int) -> Series:
    made = series_of([slices(shares, **more)])
    assert made
    return made


def kinds_of_phases(shares: Shares) -> list[str]:
    return [each.kind for each in phases_of(series(shares), WEIGHTS)]


def two_phases() -> Profile:
    """A process that is blocked on a disk for 4 s, then waits for a lock for 6 s."""
    profile = empty()
    main = Tracee(profile, 1, "app", 1, "app").wait(FSYNC, "uninterruptible", 4 * SECOND, 400)
    main.wait(LOCK, "interruptible", 6 * SECOND, 600)
    profile.slices = [slices({"io": [1] * 4 + [0] * 6, "lock": [0] * 4 + [1] * 6})]
    return profile


def steady() -> Profile:
    """A process that is blocked on a disk all the time, beside one that waits for a lock."""
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").wait(FSYNC, "uninterruptible", 10 * SECOND, 400)
    Tracee(profile, 2, "other", 2, "other").wait(LOCK, "interruptible", 9 * SECOND, 600).run(SECOND)
    profile.slices = [slices({"io": [1] * 10}), slices({"lock": [0.9] * 10, "cpu": [0.1] * 10}, pid=2, tid=2)]
    return profile
