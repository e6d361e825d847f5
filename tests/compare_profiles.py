"""Runs to be compared, made by hand."""

from __future__ import annotations

from typing import Any

from stallscope.converters.model import Profile, ValueType
from stallscope.converters.model.sites import Site
from stallscope.converters.model.slices import SliceSpent, ThreadSlices
from stallscope.converters.model.steps import Spent, Steps, StepWait
from stallscope.converters.scan.compare.changes import Side
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


def side(*rates: float) -> Side:
    """Runs with these rates, whose slices are all alike."""
    return Side(rates, min(rates), max(rates))


def runs(blocked_ms: int, number: int = 3, **given: Any) -> list[Profile]:
    """Runs whose means are a ms apart; by default as many as a test needs."""
    return [run(blocked_ms + i - 1, shift=i, **given) for i in range(number)]


def with_steps(
    profile: Profile, runs_ms: float = 10, load_ms: float = 30, *, count: int = 100, line: int = 3, pid: int = 7,
    name: str = "train.py:step",
) -> Profile:  # fmt: skip
    """The run, with steps that run and then wait in load_batch(), and 5 ms between two."""
    site = Site(("step", f"train.py:{line} load_batch", "read"), "pipe_read")
    waits = (StepWait(site, round(count * load_ms * MS), 1),)
    on_cpu, blocked = round(count * runs_ms * MS), round(count * load_ms * MS)
    steps = Spent(count, on_cpu + blocked, on_cpu, blocked, waits)
    pauses = Spent(count - 1, (count - 1) * 5 * MS, 0, (count - 1) * 5 * MS)
    median = (on_cpu + blocked) // count
    made = Steps(name, "train", pid, "train", pid, steps, pauses, median, median, 1, ())
    profile.steps.append(made)
    return profile
