"""Colours of the SVG: a hue for each kind of frame, a shade for each name."""

from __future__ import annotations

import colorsys
import zlib
from typing import Literal, NamedTuple

from ..flame import NodeKind

Palette = Literal["calm", "warm"]
"""``calm`` for waiting, ``warm`` for work on a processor."""

SHADES = 8


class _Hue(NamedTuple):
    hue: int
    """Degrees of the middle shade."""
    spread: int
    """Degrees between the outermost shades."""
    saturation: float


LABELS: dict[NodeKind, str] = {
    "kernel": "kernel",
    "native": "native",
    "python": "Python",
    "jit": "JIT",
    "api": "API",
    "other": "other",
}
"""Kinds in the order of the legend. ``root`` is not a kind of code and not in it."""

_CODES: dict[NodeKind, str] = {
    "kernel": "k", "native": "n", "python": "p", "jit": "j", "api": "a", "other": "o", "root": "r",
}  # fmt: skip

_COMMON: dict[NodeKind, _Hue] = {
    "python": _Hue(140, 24, 0.42),
    "jit": _Hue(176, 16, 0.50),
    "api": _Hue(285, 22, 0.62),
    "other": _Hue(60, 20, 0.12),
    "root": _Hue(215, 0, 0.12),
}
_HUES: dict[Palette, dict[NodeKind, _Hue]] = {
    "calm": {**_COMMON, "native": _Hue(210, 18, 0.72), "kernel": _Hue(27, 16, 0.80)},
    "warm": {**_COMMON, "native": _Hue(46, 16, 0.90), "kernel": _Hue(10, 14, 0.80)},
}
_LIGHT = (0.74, 0.84)
_DARK = (0.24, 0.32)
"""Lightness of the outermost shades: labels keep a contrast of 4.5 or more on all of them."""


def css_class(name: str, kind: str) -> str:
    """The class of a frame's box: the same for the same name in every graph."""
    code = _CODES.get(kind, "o")  # type: ignore[call-overload]
    return f"{code}{zlib.crc32(name.encode('utf-8', 'surrogatepass')) % SHADES}"


def legend_class(kind: NodeKind) -> str:
    """The class of the middle shade of a kind."""
    return f"{_CODES[kind]}{SHADES // 2}"


def css(palette: Palette) -> str:
    """Rules for all classes; the dark ones apply on a screen only, so that print is light."""
    light = "".join(_rules(palette, _LIGHT, 1.0))
    dark = "".join(_rules(palette, _DARK, 0.62))
    return f"{light}@media screen and (prefers-color-scheme:dark){{{dark}}}"


def _rules(palette: Palette, lightness: tuple[float, float], saturation: float) -> list[str]:
    low, high = lightness
    rules = []
    for kind, (hue, spread, full) in _HUES[palette].items():
        for shade in range(SHADES):
            at = shade / (SHADES - 1)
            # Hue and lightness run through the shades in different orders: neighbours differ in both.
            degrees = hue + spread * ((shade * 5 % SHADES) / (SHADES - 1) - 0.5)
            red, green, blue = colorsys.hls_to_rgb(degrees % 360 / 360, low + (high - low) * at, full * saturation)
            rules.append(f".{_CODES[kind]}{shade}{{fill:#{_byte(red)}{_byte(green)}{_byte(blue)}}}")
    return rules


def _byte(part: float) -> str:
    return f"{round(part * 255):02x}"
