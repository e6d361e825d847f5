"""Text of the SVG: hostile names made safe, values for people, names cut to fit a box."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ...base.text import printable
from ...base.units import BILLION, BILLIONTHS, counted, duration, share

CHAR_WIDTH = 0.62
"""Upper bound, in em, of a character's advance: the common monospace fonts have 0.55 to 0.62."""
_MONOSPACE = '"DejaVu Sans Mono",Menlo,Consolas,"Liberation Mono",monospace'
_PATH = re.compile(r"(?:[A-Za-z]+:)?/\S*/\S*\Z")
_PAD = 4
"""Left and right padding of a label."""

_NANOSECONDS = {"nanoseconds": 1, "microseconds": 1_000, "milliseconds": 1_000_000, "seconds": 1_000_000_000}
_BYTES = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


def escape(text: str) -> str:
    """``text`` for XML content or a double-quoted attribute.

    Characters that XML 1.0 does not allow (control characters, surrogates, U+FFFE) are invisible, and
    `printable` has therefore replaced them.
    """
    return markup(printable(text))


def markup(text: str) -> str:
    """Printable ``text`` for XML content or a double-quoted attribute."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def human(value: float, unit: str) -> str:
    """``value`` in a suitable unit: ``1.24 ms``, ``1.5 GiB``, ``12,345``, ``7 joules``, ``12.3 %``."""
    if unit in _NANOSECONDS:
        return duration(_whole(value * _NANOSECONDS[unit]))
    if unit == "bytes":
        for name, size in _BYTES:
            if value >= size:
                return f"{value / size:,.1f} {name}"
        return f"{_whole(value)} B"
    if unit == BILLIONTHS:
        return share(_whole(value), BILLION)
    number = f"{_whole(value):,}"
    return number if unit == "count" else f"{number} {printable(unit)}".rstrip()


def _whole(value: float) -> int:
    """Rounds like JavaScript: halves go up."""
    return value if isinstance(value, int) else math.floor(value + 0.5)


@dataclass(frozen=True)
class Unit:
    """Unit of the values of a graph."""

    name: str
    factor: float = 1
    """Values are multiplied by this for display."""
    things: str = ""
    """The things that are counted, in the plural, if the unit is only a count."""

    @property
    def nanoseconds(self) -> int:
        """Nanoseconds in one unit; 0 when the values are not times."""
        return _NANOSECONDS.get(self.name, 0)

    def human(self, value: int) -> str:
        """``value`` formatted by `human`."""
        return human(value if self.factor == 1 else value * self.factor, self.name)

    def told(self, value: int) -> str:
        """`human`, including what is counted: ``15 samples``."""
        return counted(value, printable(self.things)) if self.things else self.human(value)

    def change(self, after: int, before: int) -> str:
        """``+300 ms (+33.3 %)``, ``-1.00 s (-50.0 %)``, ``+2.00 s (new)``, ``-2.00 s (gone)``, ``no change``."""
        delta = after - before
        if not delta:
            return "no change"
        sign = "+" if delta > 0 else "-"
        part = "new" if before <= 0 else "gone" if after <= 0 else share(abs(delta), before)
        return f"{sign}{self.human(abs(delta))} ({sign if part[0].isdigit() else ''}{part})"

    def data(self) -> str:
        """Attributes that let the script format values in the same way."""
        factor = "" if self.factor == 1 else f' data-factor="{self.factor!r}"'
        things = f' data-things="{escape(self.things)}"' if self.things else ""
        return f'data-ns="{self.nanoseconds}" data-unit="{escape(self.name)}"{factor}{things}'


@dataclass(frozen=True)
class Labels:
    """Layout of the names in the boxes. Lengths in px."""

    font: str
    """A font family; "" is a monospaced one."""
    size: int
    height: int = 0
    """Height of a row; 0 is what the size needs."""

    @property
    def row(self) -> int:
        """Distance between rows of boxes."""
        return self.height or round(1.5 * self.size)

    @property
    def base(self) -> int:
        """Distance from the top of a box to the base line."""
        return round((self.row - 1) / 2 + 0.36 * self.size)

    @property
    def char_width(self) -> float:
        """Maximum width of a character in a monospaced font."""
        return CHAR_WIDTH * self.size

    def css(self) -> str:
        """The font's rules."""
        family = f'"{self.font}",{_MONOSPACE}' if self.font else _MONOSPACE
        return f"#labels text{{font-family:{family};font-size:{self.size}px}}.tip b{{font-family:{family}}}"

    def text(self, name: str, x: float, y: int, width: float) -> str:
        """The element for as much of a printable ``name`` as fits into a box, "" if that is too little."""
        text, bound = fit(name, width - 2 * _PAD, self.char_width)
        if not text:
            return ""
        if self.font:
            # Its characters may be wider than our bound: textLength makes the browser compress them.
            bound = bound or len(text) * self.char_width
        length = f' textLength="{bound:.1f}" lengthAdjust="spacingAndGlyphs"' if bound else ""
        return f'<text x="{x + _PAD:.1f}" y="{y + self.base}"{length}>{markup(text)}</text>\n'


def fit(name: str, width: float, char_width: float) -> tuple[str, float]:
    """Beginning of ``name`` that certainly fits in ``width`` px, "" if that is too little; and a bound of its width.

    A path loses its beginning, everything else its end. The bound is 0 for plain ASCII. Other characters may have any
    width: such a label needs the bound as its textLength.
    """
    room = int(width / char_width)
    is_path = _PATH.match(name) is not None
    if name.isascii():
        short = f"..{name[2 - room :]}" if is_path else f"{name[: room - 2]}.."
        return (name if len(name) <= room else short if room >= 4 else ""), 0.0
    cells = 0
    for char in name:
        cells += 1 if char.isascii() else 2
        if cells > room:
            short = f"..{_cut(name[::-1], room - 2)[::-1]}" if is_path else f"{_cut(name, room - 2)}.."
            return (short, room * char_width) if room >= 4 else ("", 0.0)
    return name, cells * char_width


def _cut(name: str, room: int) -> str:
    cells = 0
    for i, char in enumerate(name):
        cells += 1 if char.isascii() else 2
        if cells > room:
            return name[:i]
    return name
