"""Runs to be compared, made by hand."""

from __future__ import annotations

from stallscope.converters.model import Profile, ValueType
from stallscope.converters.model.slices import SliceSpent, ThreadSlices
from summary_profiles import MS, SECOND

NOISE = (3, -2, 0, 5, -4, 1, -1, 2, -3, 4)
"""ms by which slices differ."""


def run(
    blocked_ms: int,
    *,
    slices: int = 10,
    pids: tuple[int, ...] = (7,),
    name: str = "train",
    shift: int = 0,
    place: tuple[str, ...] = (),
) -> Profile:
    """Processes whose thread waits for a lock for so many ms of each second, and runs for the rest."""
    profile = Profile([ValueType("wall", "nanoseconds")], duration_ns=slices * SECOND)
    for pid in pids:
        waits = tuple((blocked_ms + NOISE[(i + shift) % len(NOISE)]) * MS for i in range(slices))
        runs = tuple(SECOND - each for each in waits)
        spent = [SliceSpent("lock", waits, place or ("step", name), "futex_wait"), SliceSpent("cpu", runs)]
        profile.slices.append(ThreadSlices(name, name, pid, pid, SECOND, 0, spent))
    return profile
