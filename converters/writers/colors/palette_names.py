"""Palettes that also exist in FlameGraph: one colour for all, and by the language that a function's name looks like."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...flame.tree import Node, Tree
from . import hues
from .hues import CODES, GREY, SHADES, Hue

ONE_HUE = {
    "red": Hue(4, 12, 0.85),
    "orange": Hue(28, 12, 0.90),
    "yellow": Hue(50, 10, 0.85),
    "green": Hue(125, 20, 0.50),
    "aqua": Hue(182, 14, 0.55),
    "blue": Hue(214, 16, 0.75),
    "purple": Hue(285, 18, 0.60),
}
"""Palette → hue of all frames."""

_PLAIN = {CODES["root"]: GREY["root"], CODES["separator"]: GREY["separator"]}
_ALL = "c"


class ByNothing:
    """One hue; shades distinguish names."""

    label = ""

    def __init__(self, name: str) -> None:
        self._hue = ONE_HUE[name]

    def css(self) -> str:
        return hues.rules({**_PLAIN, _ALL: self._hue})

    def css_class(self, node: Node) -> str:
        return _plain_class(node) or f"{_ALL}{hues.shade(node.key.name)}"

    def legend(self, tree: Tree) -> list[tuple[str, str]]:
        return []


class _Group(NamedTuple):
    """Functions of one colour: those of ``kind``, if given, whose name has a part that matches."""

    label: str
    hue: Hue
    pattern: re.Pattern[str]
    kind: str = ""


_SCRIPT, _HELPER = Hue(115, 22, 0.50), Hue(184, 14, 0.55)
_ANY = re.compile("")
_REST = (
    _Group("C++", Hue(52, 10, 0.85), re.compile("::")),
    _Group("kernel", Hue(28, 12, 0.88), _ANY, "kernel"),
    _Group("native", Hue(4, 12, 0.82), _ANY),
)
LANGUAGES: dict[str, tuple[_Group, ...]] = {
    "java": (
        _Group("Java", _SCRIPT, _ANY, "jit"),
        _Group("inlined", _HELPER, re.compile(r"_\[i\]$")),
        _Group("Java", _SCRIPT, re.compile(r"^L?(java|javax|jdk|net|org|com|io|sun)/|:::")),
        *_REST,
    ),
    "js": (
        _Group("JavaScript", _SCRIPT, re.compile("/"), "jit"),
        _Group("built-in", _HELPER, _ANY, "jit"),
        _REST[0],
        _Group("JavaScript", _SCRIPT, re.compile(r"/.*\.js|^ $")),
        _Group("built-in", _HELPER, re.compile(":")),
        *_REST[1:],
    ),
    "perl": (_REST[0], _Group("Perl", _SCRIPT, re.compile(r"Perl|\.pl")), *_REST[1:]),
}
"""Palette → groups, of which the first match counts; the rules are those of flamegraph.pl's palettes of these names."""


class ByLanguage:
    """Hues by group."""

    label = ""

    def __init__(self, name: str) -> None:
        self._groups = LANGUAGES[name]
        labels = dict.fromkeys(group.label for group in self._groups)
        self._codes = {label: chr(ord("A") + i) for i, label in enumerate(labels)}
        self._known: dict[tuple[str, str], str] = {}

    def css(self) -> str:
        return hues.rules({**_PLAIN, **{self._codes[group.label]: group.hue for group in self._groups}})

    def css_class(self, node: Node) -> str:
        return _plain_class(node) or f"{self._code(node)}{hues.shade(node.key.name)}"

    def legend(self, tree: Tree) -> list[tuple[str, str]]:
        present = {self._code(node) for node in tree.nodes if not _plain_class(node)}
        return [(f"{code}{SHADES // 2}", label) for label, code in self._codes.items() if code in present]

    def _code(self, node: Node) -> str:
        name, kind = node.key.name, node.key.kind
        code = self._known.get((name, kind))
        if code is None:
            fitting = (group for group in self._groups if group.kind in ("", kind) and group.pattern.search(name))
            code = self._known[name, kind] = self._codes[next(fitting).label]
        return code


def _plain_class(node: Node) -> str:
    """The class of a node that is not a function; "" for all others."""
    if node.key.kind == "root" or hues.is_separator(node.key.name):
        return hues.css_class(node.key.name, node.key.kind)
    return ""
