"""Differences of two runs made by hand, by the quantity that a threshold is compared with. See pins.py."""

from __future__ import annotations

from compare_profiles import run, runs, side, with_steps
from stallscope.converters.model import Profile
from stallscope.converters.model.slices import SliceSpent, ThreadSlices
from stallscope.converters.scan.compare.changes import Change
from stallscope.converters.scan.compare.comparing import compare
from stallscope.converters.scan.compare.intervals import Key, intervals_of
from summary_profiles import MS, SECOND


def differs_by(x: float) -> bool:
    """Whether a difference of so many s per s is told."""
    return bool(compare(runs(100), runs(100 + round(x * 1_000))).told)


def by_chance(x: float) -> bool:
    """Whether a difference that has this probability without a change is one."""
    return Change(Key("train", None, "lock"), side(0.1), side(0.4), chance=x).is_change


def has_last(x: float) -> bool:
    """Whether a last slice of this length counts."""
    profile = Profile([], duration_ns=round((1 + x) * SECOND))
    spent = SliceSpent("cpu", (SECOND, round(x * 1_000) * MS))
    profile.slices = [ThreadSlices("a", "a", 1, 1, SECOND, 0, [spent])]
    return intervals_of(profile).number == 2


def step_differs_by(x: float) -> bool:
    """Whether a step is told that takes so much more than one of 45 ms, with what is between."""
    return compare([with_steps(run(1))], [with_steps(run(1), 10 + 45 * x)]).steps[0].is_told


def are_steps_enough(x: float) -> bool:
    few = with_steps(run(1), 30, count=round(x))
    return compare([with_steps(run(1))], [few]).steps[0].is_told
