"""Finds the value of a profile that is the time or the count, whatever its name."""

from __future__ import annotations

from ..model import Profile

_UNITS = {"time": ("nanoseconds", "microseconds", "milliseconds", "seconds"), "count": ("count",)}


def value_name(profile: Profile, wanted: str) -> str:
    """The name of the sum that ``wanted`` refers to: a value's name or, if none has that name, ``time`` or ``count``
    for the first value with such a unit. Anything else is returned unchanged."""
    sums = [value_type for value_type in profile.value_types if value_type.aggregate == "sum"]
    if any(value_type.name == wanted for value_type in sums):
        return wanted
    units = _UNITS.get(wanted, ())
    return next((value_type.name for value_type in sums if value_type.unit in units), wanted)
