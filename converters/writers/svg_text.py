"""Text of the SVG: hostile names made safe, values for people, names cut to fit a box."""

from __future__ import annotations

from ..text import printable
from ..units import duration

FONT_SIZE = 12
"""Of the labels, in px. They are set in a monospace font."""
CHAR_WIDTH = 0.62 * FONT_SIZE
"""Upper bound of a character's advance: the common monospace fonts have 0.55 to 0.62 em."""

_NANOSECONDS = {"nanoseconds": 1, "microseconds": 1_000, "milliseconds": 1_000_000, "seconds": 1_000_000_000}
_BYTES = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


def escape(text: str) -> str:
    """``text`` for XML content or a double-quoted attribute.

    What XML 1.0 cannot carry at all (control characters, surrogates, U+FFFE) is invisible, so that
    `printable` has replaced it.
    """
    return markup(printable(text))


def markup(text: str) -> str:
    """Printable ``text`` for XML content or a double-quoted attribute."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def human(value: int, unit: str) -> str:
    """``value`` in the unit that suits it: ``1.24 ms``, ``1.5 GiB``, ``12,345``, ``7 joules``."""
    if unit in _NANOSECONDS:
        return duration(value * _NANOSECONDS[unit])
    if unit == "bytes":
        for name, size in _BYTES:
            if value >= size:
                return f"{value / size:,.1f} {name}"
        return f"{value} B"
    return f"{value:,}" if unit == "count" else f"{value:,} {printable(unit)}".rstrip()


def unit_data(unit: str) -> str:
    """Attributes by which the script formats sums of the graph's values as `human` does."""
    return f'data-ns="{_NANOSECONDS.get(unit, 0)}" data-unit="{escape(unit)}"'


def fit(name: str, width: float, char_width: float = CHAR_WIDTH) -> tuple[str, float]:
    """As much of ``name`` as surely fits in ``width`` px, "" if that is too little; and a bound of its width.

    The bound is 0 for plain ASCII. Other characters may be of any width: such a label needs the
    bound as its textLength.
    """
    room = int(width / char_width)
    if name.isascii():
        return (name if len(name) <= room else f"{name[: room - 2]}.." if room >= 4 else ""), 0.0
    cells = 0
    for i, char in enumerate(name):
        cells += 1 if char.isascii() else 2
        if cells > room:
            return (f"{_cut(name[:i], room - 2)}..", room * char_width) if room >= 4 else ("", 0.0)
    return name, cells * char_width


def _cut(name: str, room: int) -> str:
    cells = 0
    for i, char in enumerate(name):
        cells += 1 if char.isascii() else 2
        if cells > room:
            return name[:i]
    return name
