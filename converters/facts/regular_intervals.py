"""Intervals that are regular: most of them are about as long as their median."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..model.scheduling import Array
from . import thresholds


class Regular(NamedTuple):
    """Intervals that are regular. Times in ns."""

    median: int
    deviation: int
    """Median distance of the intervals from ``median``."""


def regular(intervals: Array) -> Regular | None:
    """``intervals``: ns, in their order; None if there are too few, or they are not regular.

    The median distance alone does not see two lengths that take turns: half of the intervals can be of any other
    length. So nearly all have to be near the median, and these have to be most of the time.
    """
    if len(intervals) < thresholds.PERIOD_INTERVALS:
        return None
    median = float(np.median(intervals))
    distances = np.abs(intervals - median)
    deviation = float(np.median(distances))
    near = distances <= thresholds.PERIOD_NEAR * median
    if deviation > thresholds.PERIOD_SCATTER * median or near.mean() < thresholds.PERIOD_NEARLY_ALL:
        return None
    if intervals[near].sum() < thresholds.MOSTLY * intervals.sum():
        return None
    return Regular(round(median), round(deviation))
