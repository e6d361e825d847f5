"""The time axis of a flame chart, and positions on it, with enough digits to distinguish neighbours."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .text import CHAR_WIDTH, Unit, human, markup

_TIMES = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))
_APART = 110
"""Minimum distance between ticks, in px."""
_LABEL = 12 * CHAR_WIDTH
"""Maximum width of a character of a label, in px."""


def position(value: float, step: float, largest: float, unit: Unit) -> str:
    """The position ``value`` in the unit that suits ``largest``, with digits for steps of ``step`` (before the factor).

    ``12.345679 s`` in steps of 5 µs. Positions that are not times are integers: ``1,234``.
    """
    scale = unit.factor * (unit.nanoseconds or 1)
    return _text(value * scale, step * scale, largest * scale, unit)


def _text(value: float, step: float, largest: float, unit: Unit) -> str:
    """Arguments are in ns, or in the unit itself if it is not a time."""
    if not unit.nanoseconds:
        return human(value, unit.name)
    name, size = next(((name, size) for name, size in _TIMES if largest >= size), _TIMES[-1])
    digits = round(math.log10(size))
    decimals = min(digits, max(0, math.ceil(math.log10(size / max(step, 1)) - 1e-9)))
    return f"{value / size:,.{decimals}f} {name}"


def ticks(whole: int, width: float, unit: Unit) -> Iterator[tuple[float, str]]:
    """Positions, from 0 to ``width`` px, and texts, for an axis from 0 to ``whole``."""
    scale = unit.factor * (unit.nanoseconds or 1)
    end = whole * scale
    step = _round_step(max(end * _APART / width, 1))
    for i in range(math.floor(end / step) + 1):
        yield i * step / end * width, _text(i * step, step, end, unit)


def _round_step(least: float) -> float:
    """The smallest of 1, 2 or 5 times a power of ten that is at least ``least``."""
    power: float = 10.0 ** math.floor(math.log10(least) + 1e-9)
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least * (1 - 1e-9))


def axis(whole: int, left: float, right: float, y: int, unit: Unit) -> str:
    """The element: labels above ``y``, the top of the frames."""
    parts = []
    for offset, text in ticks(whole, right - left, unit):
        x = left + offset
        parts.append(f'<path d="M{x:.2f} {y - 17}v14"/>')
        if x + 4 + len(text) * _LABEL <= right:
            parts.append(f'<text class="line" x="{x + 4:.2f}" y="{y - 6}">{markup(text)}</text>')
    return f'<g id="axis">{"".join(parts)}</g>\n'
