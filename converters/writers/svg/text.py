"""Text of the SVG: hostile names made safe, values for people, names cut to fit a box."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..text import printable
from ..units import duration, share

CHAR_WIDTH = 0.62
"""Upper bound, in em, of a character's advance: the common monospace fonts have 0.55 to 0.62."""
_MONOSPACE = '"DejaVu Sans Mono",Menlo,Consolas,"Liberation Mono",monospace'
_PAD = 4
"""Left and right of a label."""

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


def human(value: float, unit: str) -> str:
    """``value`` in the unit that suits it: ``1.24 ms``, ``1.5 GiB``, ``12,345``, ``7 joules``."""
    if unit in _NANOSECONDS:
        return duration(_whole(value * _NANOSECONDS[unit]))
    if unit == "bytes":
        for name, size in _BYTES:
            if value >= size:
                return f"{value / size:,.1f} {name}"
        return f"{_whole(value)} B"
    number = f"{_whole(value):,}"
    return number if unit == "count" else f"{number} {printable(unit)}".rstrip()


def _whole(value: float) -> int:
    """Rounded as JavaScript does: halves go up."""
    return value if isinstance(value, int) else math.floor(value + 0.5)


@dataclass(frozen=True)
class Unit:
    """What the values of a graph are counted in."""

    name: str
    factor: float = 1
    """What they are multiplied by before they are told."""

    @property
    def nanoseconds(self) -> int:
        """Those of one unit; 0 when the values are no times."""
        return _NANOSECONDS.get(self.name, 0)

    def human(self, value: int) -> str:
        """As `human` tells it."""
        return human(value if self.factor == 1 else value * self.factor, self.name)

    def change(self, after: int, before: int) -> str:
        """``+300 ms (+33.3 %)``, ``-1.00 s (-50.0 %)``, ``+2.00 s (new)``, ``-2.00 s (gone)``, ``no change``."""
        delta = after - before
        if not delta:
            return "no change"
        sign = "+" if delta > 0 else "-"
        part = "new" if before <= 0 else "gone" if after <= 0 else share(abs(delta), before)
        return f"{sign}{self.human(abs(delta))} ({sign if part[0].isdigit() else ''}{part})"

    def data(self) -> str:
        """Attributes by which the script tells values in the same words."""
        factor = "" if self.factor == 1 else f' data-factor="{self.factor!r}"'
        return f'data-ns="{self.nanoseconds}" data-unit="{escape(self.name)}"{factor}'


@dataclass(frozen=True)
class Labels:
    """How the names in the boxes are set. Lengths in px."""

    font: str
    """A family; "" is a monospaced one."""
    size: int
    height: int = 0
    """Of a row; 0 is what the size needs."""

    @property
    def row(self) -> int:
        """From one row of boxes to the next."""
        return self.height or round(1.5 * self.size)

    @property
    def base(self) -> int:
        """From the top of a box to the base line."""
        return round((self.row - 1) / 2 + 0.36 * self.size)

    @property
    def char_width(self) -> float:
        """No character of a monospaced font is wider."""
        return CHAR_WIDTH * self.size

    def css(self) -> str:
        """The font's rules."""
        family = f'"{self.font}",{_MONOSPACE}' if self.font else _MONOSPACE
        return f"#labels text{{font-family:{family};font-size:{self.size}px}}.tip b{{font-family:{family}}}"

    def text(self, name: str, x: float, y: int, width: float) -> str:
        """The element for as much of a printable ``name`` as fits into a box, "" for too little."""
        text, bound = fit(name, width - 2 * _PAD, self.char_width)
        if not text:
            return ""
        if self.font:
            # Its characters may be wider than our bound: the browser sets them closer.
            bound = bound or len(text) * self.char_width
        length = f' textLength="{bound:.1f}" lengthAdjust="spacingAndGlyphs"' if bound else ""
        return f'<text x="{x + _PAD:.1f}" y="{y + self.base}"{length}>{markup(text)}</text>\n'


def fit(name: str, width: float, char_width: float) -> tuple[str, float]:
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
