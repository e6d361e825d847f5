"""Times in a Chrome trace: µs, as numbers or as texts, exact to the nanosecond."""

from __future__ import annotations

from typing import Any

_MAX_NANOSECONDS = 1 << 62
"""Larger times are refused, so that the sum of two fits into 63 bits."""


def nanoseconds(value: Any) -> int:
    """Converts µs, an integer or the text of a number, exactly. ValueError, OverflowError (infinity) or TypeError for
    anything else."""
    if isinstance(value, str):
        digits = value[:-4] + value[-3:]
        whole, _, part = value.partition(".")
        if value[-4:-3] == "." and digits.isdecimal() and digits.isascii() and len(digits) <= 19:
            number = int(digits)
        elif part.isdigit() and whole.lstrip("-").isdigit() and len(whole) <= 19:
            number = int(whole.lstrip("-")) * 1000 + int((part + "000")[:3]) + (part[3:4] >= "5")
            number = -number if whole[0] == "-" else number
        else:
            number = round(float(value) * 1000)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value * 1000
    else:
        raise TypeError("a time that is no number")
    if not -_MAX_NANOSECONDS < number < _MAX_NANOSECONDS:
        raise ValueError("a time that is too large")
    return number
