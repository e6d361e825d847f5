"""Colours of the SVG: a hue for each kind of frame, a shade for each name; for paper, and for dark screens."""

from __future__ import annotations

import colorsys
import zlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ...flame.tree import NodeKind

SHADES = 8


class Hue(NamedTuple):
    """A colour that has a different shade for each name."""

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
    "waker": "waker",
    "other": "other",
}
"""Kinds in the order of the legend. ``root`` is not a kind of code and not in the legend."""

CODES: dict[str, str] = {
    "kernel": "k", "native": "n", "python": "p", "jit": "j", "api": "a", "other": "o", "root": "r",
    "separator": "s", "waker": "w",
}  # fmt: skip
"""Prefix of the class of a frame's box. Separators are recognised by name, and wakers also are."""

GREY: dict[str, Hue] = {"other": Hue(60, 20, 0.12), "root": Hue(215, 0, 0.12), "separator": Hue(215, 0, 0.04)}
_COMMON: dict[str, Hue] = {**GREY, "python": Hue(140, 24, 0.42), "jit": Hue(176, 16, 0.50), "api": Hue(285, 22, 0.62)}
_WAKER = Hue(325, 14, 0.50)
KIND_HUES: dict[str, dict[str, Hue]] = {
    "calm": {**_COMMON, "native": Hue(210, 18, 0.72), "kernel": Hue(27, 16, 0.80), "waker": _WAKER},
    "warm": {**_COMMON, "native": Hue(46, 16, 0.90), "kernel": Hue(10, 14, 0.80), "waker": _WAKER},
    # One colour family each, as in FlameGraph; within it the kinds still differ.
    "hot": {
        **GREY, "native": Hue(35, 26, 0.95), "kernel": Hue(4, 18, 0.85), "python": Hue(58, 8, 0.85),
        "jit": Hue(76, 12, 0.60), "api": Hue(332, 16, 0.75), "waker": Hue(100, 12, 0.40),
    },
    "mem": {
        **GREY, "native": Hue(128, 26, 0.50), "kernel": Hue(166, 14, 0.60), "python": Hue(96, 14, 0.52),
        "jit": Hue(70, 12, 0.55), "api": Hue(198, 12, 0.60), "waker": Hue(225, 12, 0.45),
    },
    "io": {
        **GREY, "native": Hue(228, 18, 0.66), "kernel": Hue(262, 16, 0.62), "python": Hue(198, 14, 0.60),
        "jit": Hue(174, 12, 0.48), "api": Hue(300, 14, 0.56), "waker": Hue(330, 12, 0.50),
    },
    "wakeup": {
        **GREY, "native": Hue(183, 16, 0.55), "kernel": Hue(208, 12, 0.66), "python": Hue(154, 14, 0.45),
        "jit": Hue(124, 12, 0.40), "api": Hue(246, 16, 0.60), "waker": Hue(275, 12, 0.50),
    },
    "offcpu": {
        **GREY, "native": Hue(212, 16, 0.78), "kernel": Hue(242, 14, 0.70), "python": Hue(186, 12, 0.55),
        "jit": Hue(160, 12, 0.44), "api": Hue(276, 16, 0.60), "waker": Hue(310, 14, 0.50),
    },
    "chain": {
        **GREY, "native": Hue(214, 12, 0.74), "kernel": Hue(240, 12, 0.70), "python": Hue(262, 10, 0.60),
        "jit": Hue(282, 10, 0.55), "api": Hue(304, 12, 0.55), "waker": Hue(178, 16, 0.52),
    },
}  # fmt: skip
"""Palette → kind → hue."""

_LIGHT = (0.74, 0.84)
_DARK = (0.22, 0.30)
"""Lightness of the outermost shades: labels have a contrast of at least 4.5 on all of them."""
_DARK_SATURATION = 0.62


def shade(name: str) -> int:
    """The shade of a name, the same in every graph."""
    return hash_of(name) % SHADES


def hash_of(name: str) -> int:
    """A 32-bit hash that is the same in every run, unlike ``hash``."""
    return zlib.crc32(name.encode("utf-8", "surrogatepass"))


def css_class(name: str, kind: str) -> str:
    """The class of a frame coloured by its kind."""
    if is_separator(name):
        kind = "separator"
    return f"{CODES.get(kind, CODES['other'])}{shade(name)}"


def is_separator(name: str) -> bool:
    """Whether it separates parts of a stack: user/kernel (bcc's ``-d``), sleeper/waker (FlameGraph's chain graphs)."""
    return name in ("-", "--")


def legend_class(kind: str) -> str:
    """The class of a kind's middle shade."""
    return f"{CODES[kind]}{SHADES // 2}"


def css(palette: str) -> str:
    """Rules for all classes of a palette of `KIND_HUES`."""
    return rules({CODES[kind]: hue for kind, hue in KIND_HUES[palette].items()})


def rules(hues: Mapping[str, Hue]) -> str:
    """Rules for the classes CODE0 … CODE7 of each code in ``hues``; see `in_both_modes`."""
    return in_both_modes("".join(_shades(hues, _LIGHT, 1.0)), "".join(_shades(hues, _DARK, _DARK_SATURATION)))


def in_both_modes(light: str, dark: str) -> str:
    """Combines rules for both modes: the dark ones apply only on a screen, so that print is light."""
    return f"{light}@media screen and (prefers-color-scheme:dark){{{dark}}}"


def fill(css_class: str, degrees: float, lightness: float, saturation: float) -> str:
    """One rule."""
    parts = colorsys.hls_to_rgb(degrees % 360 / 360, lightness, saturation)
    return f".{css_class}{{fill:#{''.join(f'{round(part * 255):02x}' for part in parts)}}}"


def _shades(hues: Mapping[str, Hue], lightness: tuple[float, float], saturation: float) -> Iterator[str]:
    low, high = lightness
    for code, (hue, spread, full) in hues.items():
        for i in range(SHADES):
            # Hue and lightness go through the shades in different orders: neighbours differ in both.
            degrees = hue + spread * ((i * 5 % SHADES) / (SHADES - 1) - 0.5)
            yield fill(f"{code}{i}", degrees, low + (high - low) * i / (SHADES - 1), full * saturation)
