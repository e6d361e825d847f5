"""Certainty of a share that samples show: p of n samples has a standard error of sqrt(p * (1 - p) / n)."""

from __future__ import annotations

from math import sqrt

from ..base.units import share
from . import thresholds


def shown_share(samples: int, part: int, whole: int) -> str:
    """``part`` of ``whole``, by this number of samples in ``part``: ``about 79 %`` if they are few. 0: it is exact."""
    if not samples or not 0 < part <= whole:
        return share(part, whole)
    of = _number(samples, part, whole)
    # Not 0 or 1, which few samples do not show.
    probable = (samples + 1) / (of + 2)
    rough = sqrt(probable * (1 - probable) / of) >= thresholds.ROUGH
    return f"about {100 * part / whole:.0f} %" if rough else share(part, whole)


def are_few(samples: int, part: int, whole: int) -> bool:
    """Whether ``whole`` has too few samples to say what part of it is."""
    return not 0 < part <= whole or _number(samples, part, whole) < thresholds.FEW_SAMPLES


def _number(samples: int, part: int, whole: int) -> float:
    """Number of samples in ``whole``, where ``part`` of it has ``samples``."""
    return samples * whole / part
