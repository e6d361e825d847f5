"""Profiles for the report of a scan. Times in ns."""

from __future__ import annotations

from stallscope.converters.model import Profile
from summary_profiles import READ, SECOND, Tracee
from verdict_profiles import FSYNC, LOCK, one


def three_troubles() -> Profile:
    """A process is blocked by a disk, one by its peer, and two by a lock, for less of their time."""
    profile = one(FSYNC, 9 * SECOND, state="uninterruptible", runs=SECOND)
    Tracee(profile, 2, "client", 2, "client").run(SECOND).wait(READ, "interruptible", 9 * SECOND, 900)
    for pid in (3, 4):
        Tracee(profile, pid, "queue", pid, "queue").run(SECOND).wait(LOCK, "interruptible", 4 * SECOND, 900)
    return profile
