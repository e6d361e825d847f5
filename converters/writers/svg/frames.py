"""The boxes of a graph: visible ones are elements, those that are still too narrow are text for the script.

A browser needs ten times as long for an element as for a line of text. Boxes that only become visible by zooming are
therefore lines ``CLASS DEPTH START TOTAL OWN […] NUMBER`` between their neighbours' elements, where the number is that
of a line ``NAME, tab, ORIGIN`` in the element from `Frames.names`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...base.text import printable
from ...base.units import counted, share
from ...flame.tree import Key, Node, Tree
from ...model import Profile
from ...transforms.diff import AFTER, BEFORE
from ..base.options import WriteOptions
from ..colors import hues
from ..colors import palette as palettes
from ..colors.palette import Palette
from .axis import position
from .text import Labels, Unit, escape, markup

PAD = 12
"""Margin left and right of the frames, in px."""
_HEADER = 86
_AXIS = 20
_BAND_GAP = 10
"""Gap between the rows of two tracks, in px."""
_LEAST = 0.1
"""Minimum width of a visible box, in px; also used in tree.js."""


@dataclass(frozen=True)
class Graph:
    """The data that parts of the document may need."""

    profile: Profile
    tree: Tree
    options: WriteOptions
    palette: Palette
    labels: Labels
    unit: Unit

    @property
    def top(self) -> int:
        """y of the top of the frames."""
        return _HEADER + (_AXIS if self.tree.timed else 0)

    @property
    def height(self) -> int:
        """Height of the frames, in px."""
        gaps = max(len(self.tree.bands) - 1, 0) * _BAND_GAP
        return max(self.tree.levels, 3) * self.labels.row + gaps

    def compared(self, node: Node) -> str:
        """``before 900 ms: +300 ms (+33.3 %)``; if before is drawn, ``after 1.20 s: +300 ms (+33.3 %)``."""
        drawn = self.tree.value_type.name
        after, before = palettes.sides(node, drawn)
        name, other = (AFTER, after) if drawn == BEFORE else (BEFORE, before)
        return f"{name} {self.unit.human(other)}: {self.unit.change(after, before)}"


class Frames:
    """Writes the frames of one graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._texts: dict[Key, tuple[str, str]] = {}
        self._numbers: dict[Key, int] = {}
        """Numbers of the keys of narrow boxes."""

    def elements(self) -> Iterator[str]:
        """Boxes, then labels: labels are above every box and let the pointer through."""
        graph, labels = self._graph, self._graph.labels
        scale = (graph.options.width - 2 * PAD) / max(graph.tree.total, 1)
        tops = self._tops()
        drawn_labels = []
        yield '<g id="frames">\n'
        for node in graph.tree.nodes:
            width = node.total * scale
            if node.depth == 0:
                base = next(tops)
            elif width < _LEAST:
                yield self._line(node)
                continue
            x = PAD + node.start * scale
            y = base + (node.depth if graph.options.inverted else -node.depth) * labels.row
            yield self._box(node, x, y, width)
            if width > 2 * labels.char_width:
                drawn_labels.append(labels.text(printable(node.key.name), x, y, width))
        yield '</g>\n<g id="labels">\n'
        yield from drawn_labels
        yield "</g>\n"

    def names(self) -> str:
        """The names of the narrow boxes, after `elements`."""
        if not self._numbers:
            return ""
        lines = "\n".join("\t".join(self._text(key)) for key in self._numbers)
        return f'<metadata id="names">{lines}</metadata>\n'

    def _tops(self) -> Iterator[int]:
        """The top edge of each root."""
        top, row = self._graph.top, self._graph.labels.row
        for rows in self._graph.tree.bands:
            yield top if self._graph.options.inverted else top + (rows - 1) * row
            top += rows * row + _BAND_GAP

    def _box(self, node: Node, x: float, y: int, width: float) -> str:
        graph = self._graph
        name, origin = self._text(node.key)
        # The gap between neighbours is taken from the box, unless the box is too narrow for that.
        drawn = width - 1 if width > 4 else width
        return (
            f'<rect class="{graph.palette.css_class(node)}" x="{x:.2f}" y="{y}" width="{drawn:.2f}"'
            f' height="{graph.labels.row - 1}" data-v="{self._data(node)}">'
            f"<title>{name}\n{markup(self._told(node))}\n{origin}</title></rect>\n"
        )

    def _line(self, node: Node) -> str:
        number = self._numbers.setdefault(node.key, len(self._numbers))
        return f"{self._graph.palette.css_class(node)} {self._data(node)} {number}\n"

    def _data(self, node: Node) -> str:
        """The numbers of a frame for the script."""
        tree = self._graph.tree
        data = f"{node.depth} {node.start} {node.total} {node.own}"
        if tree.differential:
            return f"{data} {node.delta} {node.own_delta}"
        return f"{data} {node.events}" if tree.counted else data

    def _told(self, node: Node) -> str:
        """Text with the value of a node in words, for the frame's title."""
        graph, tree = self._graph, self._graph.tree
        line = f"{graph.unit.told(node.total)} · {share(node.total, tree.total)}"
        if tree.differential:
            return f"{line} · {graph.compared(node)}"
        if tree.timed:
            # Three digits, as in the length.
            return f"{line} · at {position(node.start, node.total / 100, node.start + node.total, graph.unit)}"
        if node.key.kind != "root":
            line += f" · {graph.unit.told(node.own)} in itself"
        return f"{line} · {counted(node.events, printable(tree.counted))}" if tree.counted else line

    def _text(self, key: Key) -> tuple[str, str]:
        """Name and origin."""
        if key not in self._texts:
            self._texts[key] = escape(key.name), _origin(key)
        return self._texts[key]


def _origin(key: Key) -> str:
    if key.kind == "root":
        return ""
    return escape(" · ".join(part for part in (hues.LABELS.get(key.kind, key.kind), key.module) if part))
