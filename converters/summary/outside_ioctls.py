"""Ioctls of traced threads that no timed function made: their time is not in the table, but in the picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..base.text import printable
from ..base.units import duration, plural
from ..facts import thresholds
from ..model import Profile
from .call_places import Places
from .calls import Calls


def outside_ioctls(profile: Profile, ioctls: Sequence[Calls]) -> tuple[tuple[str, int], ...]:
    """Frames of ioctls, and how many ns of each are outside of functions' calls, the longest first; nothing if that is
    hardly any. ``ioctls``: all of the traced threads."""
    inside: Counter[str] = Counter()
    places = Places()
    for sample in profile.samples:
        place = places.of(sample.stack)
        if place.ioctl and place.functions:
            inside[place.ioctl] += sample.values[0]
    whole: Counter[str] = Counter()
    for each in ioctls:
        whole[f"{each.total.name} {each.total.device}"] += each.total.whole
    found = {frame: ns - inside[frame] for frame, ns in whole.items() if ns > inside[frame]}
    if sum(found.values()) <= thresholds.OUTSIDE_IOCTLS * whole.total():
        return ()
    return tuple(sorted(found.items(), key=lambda one: (-one[1], one[0])))


def line(outside: Sequence[tuple[str, int]]) -> str:
    """Line under the table of calls."""
    told = [f"{printable(frame)} {duration(ns)}" for frame, ns in outside[: thresholds.IOCTLS_NAMED]]
    if (rest := len(outside) - thresholds.IOCTLS_NAMED) > 0:
        told.append(plural(rest, "other"))
    return f"Ioctls outside of these calls: {duration(sum(ns for _, ns in outside))} ({', '.join(told)})"
