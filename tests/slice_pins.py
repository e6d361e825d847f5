"""Phases of slices made by hand, by the quantity that a threshold is compared with. See pins.py."""

from __future__ import annotations

from collections.abc import Sequence

from slice_profiles import kinds_of_phases, series, slices
from stallscope.converters.facts import thresholds
from stallscope.converters.facts.slices import only_in
from stallscope.converters.scan.over_time import over_time
from stallscope.converters.summary.judging import read
from summary_profiles import empty


def beside(parts: Sequence[float]) -> dict[str, Sequence[float]]:
    """Slices with these parts of I/O, and waits for a lock in the rest."""
    return {"io": parts, "lock": [1 - part for part in parts]}


def is_phase(x: float) -> bool:
    """Whether so many slices at the end are a phase."""
    number = round(x)
    return len(kinds_of_phases(beside([1.0] * (10 - number) + [0.0] * number))) == 2


def changes_by(x: float) -> bool:
    """Whether a share that is this much larger before makes two phases."""
    return bool(kinds_of_phases(beside([0.5 + x / 2] * 5 + [0.5 - x / 2] * 5)))


def exceeds_scatter(x: float) -> bool:
    """Whether two phases are seen whose shares differ by so many standard errors. The slices at the border do not
    count; of the 4 on each side half are above the mean, half below."""
    scatter = 0.6 / x / (2 / 3) ** 0.5
    one = [0.8 + scatter, 0.8 - scatter, 0.8 + scatter, 0.8 - scatter]
    other = [part - 0.6 for part in one]
    return bool(kinds_of_phases(beside([*one, 0.8, 0.2, *other])))


def holds_in(x: float) -> bool:
    """Whether what has this share of its time in 7 of 10 slices holds only there."""
    rest = 7 * 0.9 * (1 - x) / (3 * x)
    return only_in(series(beside([0.9] * 7 + [rest] * 3)), {"io"}) is not None


def holds_for(x: float) -> bool:
    """Whether what has nearly all of its time in this share of the slices holds only there."""
    number = int(100 * x / thresholds.HOLDS_IN)
    return only_in(series(beside([1.0] * number + [0.0] * (100 - number))), {"io"}) is not None


def phases_told(x: float) -> bool:
    """Whether so many phases are told."""
    kinds = ("cpu", "io", "lock", "peer", "driver")[: round(x)]
    steps = {kind: [float(kind == each) for each in kinds for _ in range(3)] for kind in kinds}
    profile = empty()
    profile.slices = [slices(steps)]
    over = over_time(read(profile).facts, (), [(1, 1)])
    return over is not None and len(over.phases) == len(kinds)
