"""Steps that are much slower than the others, and whether they come regularly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..model.scheduling import Array
from ..model.steps import SLOW
from . import thresholds

_TRIED = 64
"""Number of the slowest steps that are compared to find how regularly they come."""
_STARTS = 3
"""Number of the slowest steps from which distances are measured: the slowest may have come by chance."""


class Slow(NamedTuple):
    """Places of steps, in their order. ``every``: as in `SlowSteps`."""

    places: Array
    every: int | None


def slow_steps(walls: Array) -> Slow | None:
    """``walls``: the times of a thread's steps, in their order."""
    if len(walls) < thresholds.STEPS_FOR_MEDIAN:
        return None
    is_slow = walls > SLOW * np.median(walls)
    slow = np.flatnonzero(is_slow)
    if not len(slow) or walls[slow].sum() < thresholds.SLOW_STEPS_MATTER * walls.sum():
        return None
    for every, places in _regular(walls, slow):
        if is_slow[places].all() and walls[places].sum() >= thresholds.REGULAR_HAVE * walls[slow].sum():
            return Slow(places, every)
    return Slow(slow, None)


def _regular(walls: Array, slow: Array) -> Iterator[tuple[int, Array]]:
    """The least distances first. Every step at such a distance must be slow: one that is not makes it no rule."""
    slowest = slow[np.argsort(-walls[slow], kind="stable")][:_TRIED]
    starts = slowest[:_STARTS]
    distances = np.abs(slowest[:, None] - starts[None, :])
    for every in np.unique(distances[distances > 0]).tolist():
        for start in starts.tolist():
            places = np.arange(start % every, len(walls), every)
            if len(places) >= thresholds.REGULAR_STEPS:
                yield every, places
