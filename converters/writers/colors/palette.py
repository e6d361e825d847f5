"""Palettes: colours by kind of code, by module, by state of the thread, or by change."""

from __future__ import annotations

import os.path
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol

from ...base.errors import StallscopeError
from ...flame.tree import Node, Tree
from ...model import Profile
from ...model.states import (
    IDLE,
    INTERRUPTIBLE,
    OTHER,
    PREEMPTED,
    RUNNING,
    STOPPED,
    TRACED,
    UNINTERRUPTIBLE,
    WOKEN,
)  # fmt: skip
from ...model.wakers import WAKER, has_waker
from ...transforms.diff import BEFORE, is_differential
from ...transforms.labels import runs_and_waits
from . import hues
from .hues import CODES, GREY, KIND_HUES, LABELS, SHADES, Hue
from .palette_names import LANGUAGES, ONE_HUE, ByLanguage, ByNothing

PALETTES = (*KIND_HUES, *LANGUAGES, *ONE_HUE, "state", "module", "diff")
"""Names: by kind in several colours, by language, without a meaning, by state, by module, by change."""

Swatch = tuple[str, str]
"""A class, and its meaning."""


class Palette(Protocol):
    """Colours of one graph. A class has the same colour in every graph with the same palette."""

    label: str
    """The label that `flame.build` has to set in the nodes, "" for none."""

    def css(self) -> str:
        """The rules of all classes."""

    def css_class(self, node: Node) -> str:
        """The class of a frame's box."""

    def legend(self, tree: Tree) -> list[Swatch]:
        """The classes in the graph, the most important first in case there are too many."""


def choose(
    name: str, profile: Profile, drawn: str, *, negate: bool = False, roots: Sequence[str] | None = None
) -> Palette:
    """The palette called ``name``, or the one that suits ``profile``, whose value ``drawn`` is shown.

    ``roots``: labels shown below the stacks, which colours need not show. ``negate`` swaps the colours of what has
    grown and what has shrunk.
    Raises StallscopeError (exit code 2) for an unknown name, or one that does not fit.
    """
    differential = is_differential(profile)
    if name and name not in PALETTES:
        raise StallscopeError(f"there is no palette {name!r}", f"choose one of: {', '.join(PALETTES)}", exit_code=2)
    if name == "diff" and not differential:
        raise StallscopeError(
            "the palette diff colours what changed, and the profile is no comparison",
            "compare two profiles",
            exit_code=2,
        )
    if name == "diff" or (differential and not name):
        return _ByChange(drawn, *((_BLUE, _RED) if negate else (_RED, _BLUE)))
    if negate:
        raise StallscopeError("--negate swaps the colours of a comparison", "compare two profiles", exit_code=2)
    if name == "state" or (not name and "state" not in (roots or ()) and runs_and_waits(profile)):
        return _ByState()
    if name == "module":
        return _ByModule()
    if name in LANGUAGES:
        return ByLanguage(name)
    if name in ONE_HUE:
        return ByNothing(name)
    return _ByKind(name or _suiting(profile, drawn))


_WAITING = re.compile("off-?cpu|block|wait|delay|idle|sched", re.IGNORECASE)


def _suiting(profile: Profile, drawn: str) -> str:
    """Calm colours for waiting, warm ones for work on a CPU."""
    column = next((i for i, value_type in enumerate(profile.value_types) if value_type.name == drawn), 0)
    if any(sample.values[column] and has_waker(sample.stack) for sample in profile.samples):
        return "chain"
    if any(_WAITING.search(value_type.name) for value_type in profile.value_types):
        return "calm"
    units = {value_type.unit for value_type in profile.value_types if value_type.name == drawn}
    return "mem" if units == {"bytes"} else "warm"


class _ByKind:
    """Hues by kind of code, as in FlameGraph's annotations."""

    label = ""

    def __init__(self, name: str) -> None:
        self._name = name

    def css(self) -> str:
        return hues.css(self._name)

    def css_class(self, node: Node) -> str:
        name = node.key.name
        is_waker = self._name == "chain" and name.endswith("_[w]")
        return hues.css_class(name, WAKER if is_waker else node.key.kind)

    def legend(self, tree: Tree) -> list[Swatch]:
        codes = {self.css_class(node)[0] for node in tree.nodes}
        return [(hues.legend_class(kind), label) for kind, label in LABELS.items() if CODES[kind] in codes]


_STATES: dict[str, Hue] = {
    INTERRUPTIBLE: Hue(210, 18, 0.72),
    UNINTERRUPTIBLE: Hue(8, 14, 0.80),
    WOKEN: Hue(50, 12, 0.85),
    PREEMPTED: Hue(30, 12, 0.85),
    RUNNING: Hue(130, 16, 0.45),
    STOPPED: Hue(285, 16, 0.55),
    TRACED: Hue(320, 16, 0.60),
    IDLE: Hue(180, 12, 0.25),
    OTHER: GREY["other"],
    "": GREY["root"],
}


class _ByState:
    """Hues by the state in which a thread spends most of the frame's time."""

    label = "state"

    def __init__(self) -> None:
        self._codes = {state: chr(ord("A") + i) for i, state in enumerate(_STATES)}

    def css(self) -> str:
        return hues.rules({self._codes[state]: hue for state, hue in _STATES.items()})

    def css_class(self, node: Node) -> str:
        code = self._codes[""] if node.depth == 0 else self._codes.get(node.label, self._codes[OTHER])
        return f"{code}{hues.shade(node.key.name)}"

    def legend(self, tree: Tree) -> list[Swatch]:
        present = {node.label if node.label in _STATES else OTHER for node in tree.nodes[1:]}
        return [
            (f"{code}{SHADES // 2}", state or "state not known")
            for state, code in self._codes.items()
            if state in present
        ]


_MODULE_HUES = 24
_OF_VERSIONS = re.compile(r"(\.so)[.\d]*$")


class _ByModule:
    """Hues by the file that contains the code; with many files, two may have the same hue."""

    label = ""

    def css(self) -> str:
        files = {f"m{i}-": Hue(360 * i // _MODULE_HUES, 8, 0.78 if i % 2 else 0.5) for i in range(_MODULE_HUES)}
        return hues.rules({**files, CODES["root"]: GREY["root"], CODES["separator"]: GREY["separator"]})

    def css_class(self, node: Node) -> str:
        if node.key.kind == "root" or hues.is_separator(node.key.name):
            return hues.css_class(node.key.name, node.key.kind)
        return f"{self._code(self._module(node))}{hues.shade(node.key.name)}"

    def legend(self, tree: Tree) -> list[Swatch]:
        own: defaultdict[str, int] = defaultdict(int)
        for node in tree.nodes:
            if node.key.kind != "root":
                own[self._module(node)] += node.own
        widest = sorted(own, key=lambda module: (-own[module], module))
        return [(f"{self._code(module)}{SHADES // 2}", module) for module in widest]

    @staticmethod
    def _code(module: str) -> str:
        return f"m{hues.hash_of(module) % _MODULE_HUES}-"

    @staticmethod
    def _module(node: Node) -> str:
        """A name that other versions of the library share."""
        name = _OF_VERSIONS.sub(r"\1", os.path.basename(node.key.module))
        return name or LABELS.get(node.key.kind, node.key.kind)


_GROWN = ((1.0, "+100 %"), (0.33, "+33 %"), (0.10, "+10 %"), (0.02, "+2 %"))
_SHRUNK = ((-0.50, "-50 %"), (-0.25, "-25 %"), (-0.10, "-10 %"), (-0.02, "-2 %"))
"""Relative change from which each step of colour applies: the same factor in both directions."""
_RED, _BLUE = 4, 214
_STEPS = len(_GROWN)


class _ByChange:
    """Red (unless negated) for more than before, in the frame and everything that it calls; the other hue for less."""

    label = ""

    def __init__(self, drawn: str, more: int, less: int) -> None:
        self._drawn = drawn
        self._more, self._less = more, less

    def css(self) -> str:
        light = [hues.fill(f"x{_STEPS}", 215, 0.90, 0.12)]
        dark = [hues.fill(f"x{_STEPS}", 215, 0.22, 0.10)]
        for step in range(1, _STEPS + 1):
            part = step / _STEPS
            for place, hue in ((_STEPS + step, self._more), (_STEPS - step, self._less)):
                light.append(hues.fill(f"x{place}", hue, 0.93 - 0.23 * part, 0.70 + 0.20 * part))
                dark.append(hues.fill(f"x{place}", hue, 0.22 + 0.14 * part, 0.25 + 0.40 * part))
        return hues.in_both_modes("".join(light), "".join(dark))

    def css_class(self, node: Node) -> str:
        return f"x{_STEPS + _step(node.delta, sides(node, self._drawn)[1])}"

    def legend(self, tree: Tree) -> list[Swatch]:
        if not tree.nodes:
            return []
        less = [(f"x{i}", f"{text}{' or less' if not i else ''}") for i, (_, text) in enumerate(_SHRUNK)]
        more = [(f"x{2 * _STEPS - i}", f"{text}{' or more' if not i else ''}") for i, (_, text) in enumerate(_GROWN)]
        return [*less, (f"x{_STEPS}", "as before"), *reversed(more)]


def sides(node: Node, drawn: str) -> tuple[int, int]:
    """(after, before) of a node in a differential profile whose value ``drawn`` is shown."""
    return (node.total + node.delta, node.total) if drawn == BEFORE else (node.total, node.total - node.delta)


def _step(delta: int, before: int) -> int:
    """-4 (half or less) … 4 (double or more, or new)."""
    if delta > 0:
        return next((_STEPS - i for i, (least, _) in enumerate(_GROWN) if delta >= least * before), 0)
    if delta < 0:
        return -next((_STEPS - i for i, (most, _) in enumerate(_SHRUNK) if delta <= most * before), 0)
    return 0
