r"""Writes the wait-for graph as DOT, for graphviz: https://graphviz.org/doc/info/lang.html.

Every id and label is a quoted string. In these, `"` and `\` are the only characters with a meaning: backslashes begin
escapes in labels (`\n`, `\N`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from ...base.units import duration, share
from ...model import Profile
from ...model.waits_for import DEVICE, PROCESS, THREAD
from ..base.options import WriteOptions
from .graph import Picture, Point, picture

_SHAPES = {THREAD: "box", PROCESS: "box", DEVICE: "cylinder"}
_FILLS = {THREAD: "#dceaf7", PROCESS: "#dceaf7", DEVICE: "#f6e3c5"}
_OTHER_FILL = "#eef1f5"
_KNOT, _USUAL = "#b3261e", "#57606a"
_WIDEST = 8.0
"""Points of the line with the most time."""


def write(profile: Profile, file: BinaryIO, options: WriteOptions) -> None:
    """Writes the graph of ``profile``. StallscopeError if it does not tell who ended waits."""
    file.writelines(f"{line}\n".encode() for line in lines(picture(profile, options)))


def lines(made: Picture) -> Iterator[str]:
    """The text of a graph. Edges are as wide as their time after redistribution."""
    most = max((max(arrow.passed_on, arrow.waited) for arrow in made.arrows), default=0) or 1
    yield "digraph waits_for {"
    yield f"  label={labelled(f'{made.title}: {made.subtitle()}')};"
    yield '  graph [rankdir=LR, fontname="sans-serif", fontsize=11];'
    yield '  node [fontname="sans-serif", fontsize=10, style="filled"];'
    yield '  edge [fontname="sans-serif", fontsize=9];'
    knots = {point.id: point.knot for point in made.points}
    for point in made.points:
        yield f"  {quoted(point.id)} [{_node(point)}];"
    for arrow in made.arrows:
        width = max(0.5, _WIDEST * arrow.passed_on / most)
        knotted = knots[arrow.source] and knots[arrow.source] == knots[arrow.target] and arrow.source != arrow.target
        told = f"{duration(arrow.passed_on)} {share(arrow.passed_on, made.total)}"
        yield (
            f"  {quoted(arrow.source)} -> {quoted(arrow.target)} [label={quoted(told)}, penwidth={width:.2f}, "
            f'color="{_KNOT if knotted else _USUAL}", waited_ns={arrow.waited}, passed_on_ns={arrow.passed_on}];'
        )
    yield "}"


def quoted(text: str) -> str:
    """A string of DOT; ``text`` has no control characters (`printable`)."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def labelled(text: str) -> str:
    """`quoted` for a label, in which Graphviz replaces HTML's entities (``&lt;``)."""
    return quoted(text.replace("&", "&amp;"))


def _node(point: Point) -> str:
    label = f"{labelled(point.name)[:-1]}\\n"
    times = [f"blocked {duration(point.waits)}"] if point.waits else []
    times += [f"blocks {duration(point.blocks)}"] if point.blocks else []
    shape, fill = _SHAPES.get(point.kind, "ellipse"), _FILLS.get(point.kind, _OTHER_FILL)
    color = _KNOT if point.knot else _USUAL
    style = ', style="filled,dashed"' if point.idle else ""
    return (
        f'label={label}{", ".join(times)}", shape={shape}, fillcolor="{fill}", color="{color}"{style}, '
        f"kind={point.kind}, blocked_ns={point.waits}, blocks_ns={point.blocks}"
    )
