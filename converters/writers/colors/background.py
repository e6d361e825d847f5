"""Backgrounds: white or a tint on paper and light screens, near black or its dark tint on dark ones."""

from __future__ import annotations

import re

from ...base.errors import StallscopeError
from .hues import in_both_modes

TINTS = {
    "yellow": ("#fcfae6", "#1b1a12"),
    "blue": ("#eef2fd", "#12161f"),
    "green": ("#eef8ee", "#121a14"),
    "grey": ("#f4f4f4", "#1a1b1d"),
}
"""Name → (on light screens, on dark ones)."""

_COLOR = re.compile(r"#[0-9a-fA-F]{6}\Z")
_TEXT = "#57606a"
"""The lightest text of a light page, .line in svg.css."""
_LEAST_CONTRAST = 4.5
"""The minimum that WCAG 2 requires for text."""


def css(name: str) -> str:
    """The rules for a tint or for ``#rrggbb``, which does not apply to dark screens; "" for "".

    Raises StallscopeError (exit code 2) for an invalid colour, or one too dark for the text.
    """
    if not name:
        return ""
    if name in TINTS:
        light, dark = TINTS[name]
        return in_both_modes(_rule(light), _rule(dark))
    if not _COLOR.match(name):
        names = ", ".join(TINTS)
        raise StallscopeError(f"{name!r} is no background", f"choose {names}, or #rrggbb", exit_code=2)
    if contrast(name, _TEXT) < _LEAST_CONTRAST:
        raise StallscopeError(
            f"text cannot be read on {name}", "choose a lighter colour; dark screens have a dark one", exit_code=2
        )
    return f"@media not screen{{{_rule(name)}}}@media screen and (prefers-color-scheme:light){{{_rule(name)}}}"


def contrast(one: str, other: str) -> float:
    """1 to 21, as defined in WCAG 2."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _rule(color: str) -> str:
    return f"svg{{background:{color}}}#paper{{fill:{color}}}"
