"""Writes a flame graph as one self-contained SVG file, interactive where scripts may run.

The picture is complete without its script (in an <img>, in print). The script is a constant; names
are only ever XML text, which it reads back from the document. One frame of the graph is::

    <rect class="n3" x=… y=… width=… height=… data-v="DEPTH START TOTAL OWN [COUNT]">
    <title>NAME \\n value · share · count \\n kind · module</title></rect>

in pre-order, START, TOTAL and OWN in the unit of the value type.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import BinaryIO

from ..flame import Key, Node, Tree, build
from ..model import Profile
from ..options import WriteOptions
from ..text import printable
from ..units import count, duration, plural, share
from . import svg_color
from .svg_color import Palette
from .svg_text import CHAR_WIDTH, FONT_SIZE, escape, fit, human, markup, unit_data

_PAD = 12
_ROW = 18
_BOX = _ROW - 1
_LABEL_PAD = 4
_HEADER = 86
_LINE = 17
"""Height of a line of notes."""
_PROSE_WIDTH = 7.2
"""Mean advance, on the safe side, of the 12 px sans-serif that title and notes are set in."""
_MAX_NOTES = 8
_BATCH = 4096


@dataclass(frozen=True)
class SvgOptions:
    """What only this writer knows. Lengths in px."""

    width: int = 1200
    """Of the static picture; the script fits it to the window."""
    min_width: float = 0.1
    """Narrower branches are left out (and counted)."""
    subtitle: str = ""
    """"" makes one of host, start, duration and total."""
    notes: Sequence[str] = ()
    """Lines under the graph, before the profile's own comments."""
    inverted: bool = False
    """Roots on top (icicles)."""
    palette: Palette = "calm"


def write(profile: Profile, file: BinaryIO, options: WriteOptions, svg: SvgOptions | None = None) -> None:
    """Writes ``profile`` to ``file`` (UTF-8).

    Raises StallscopeError when ``options.value`` is not in the profile.
    """
    svg = svg or SvgOptions()
    graph_width = svg.width - 2 * _PAD
    tree = build(profile, options, minimum=svg.min_width / graph_width)
    batch: list[str] = []
    for part in _document(profile, tree, options, svg):
        batch.append(part)
        if len(batch) >= _BATCH:
            file.write("".join(batch).encode())
            batch.clear()
    file.write("".join(batch).encode())


def _document(profile: Profile, tree: Tree, options: WriteOptions, svg: SvgOptions) -> Iterator[str]:
    title = options.title or profile.title or "Flame graph"
    notes = list(_notes(profile, tree, svg))
    notes_top = _HEADER + max(tree.levels, 3) * _ROW + 22
    height = notes_top + len(notes) * _LINE
    data = f'data-pad="{_PAD}" {unit_data(tree.value_type.unit)}'
    if svg.inverted:
        data += ' data-inverted="1"'
    yield '<?xml version="1.0" encoding="UTF-8" standalone="no"?>\n'
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" version="1.1" width="{svg.width}" height="{height}"'
        f' viewBox="0 0 {svg.width} {height}" {data}>\n'
    )
    yield f"<title>{escape(title)}</title>\n"
    yield f"<style>{_resource('svg.css')}{svg_color.css(svg.palette)}</style>\n"
    yield f'<rect id="paper" width="{svg.width}" height="{height}"/>\n<g id="page">\n'
    yield _line("heading", 30, title, svg.width, _PROSE_WIDTH * 18 / 12)
    yield _line("line", 50, svg.subtitle or _subtitle(profile, tree), svg.width)
    yield _legend(tree)
    if not tree.nodes:
        yield _line("nothing", _HEADER + 2 * _ROW, _nothing(profile), svg.width)
    yield from _frames(tree, svg)
    for i, (css, text) in enumerate(notes):
        yield _line(css, notes_top + i * _LINE, text, svg.width)
    yield "</g>\n"
    if tree.nodes:
        yield f"<script><![CDATA[\n{_script()}]]></script>\n"
    yield "</svg>\n"


def _frames(tree: Tree, svg: SvgOptions) -> Iterator[str]:
    """Boxes, then labels: a label lies over every box and lets the pointer through."""
    scale = (svg.width - 2 * _PAD) / max(tree.total, 1)
    texts: dict[Key, tuple[str, str, str]] = {}
    labels = []
    yield '<g id="frames">\n'
    for node in tree.nodes:
        key = node.key
        if key not in texts:
            texts[key] = (svg_color.css_class(key.name, key.kind), escape(key.name), _origin(key))
        css, name, origin = texts[key]
        row = node.depth if svg.inverted else tree.levels - 1 - node.depth
        x = _PAD + node.start * scale
        y = _HEADER + row * _ROW
        width = node.total * scale
        data, line = _numbers(node, tree)
        # The gap between neighbours comes off the box, but not where the box is little more than it.
        drawn = width - 1 if width > 4 else width
        yield (
            f'<rect class="{css}" x="{x:.2f}" y="{y}" width="{drawn:.2f}" height="{_BOX}" data-v="{data}">'
            f"<title>{name}\n{markup(line)}\n{origin}</title></rect>\n"
        )
        if width > 2 * CHAR_WIDTH:
            labels.append(_label(node, x, y, width))
    yield '</g>\n<g id="labels">\n'
    yield from labels
    yield "</g>\n"


def _label(node: Node, x: float, y: int, width: float) -> str:
    text, bound = fit(printable(node.key.name), width - 2 * _LABEL_PAD)
    if not text:
        return ""
    length = f' textLength="{bound:.1f}" lengthAdjust="spacingAndGlyphs"' if bound else ""
    return f'<text x="{x + _LABEL_PAD:.1f}" y="{y + FONT_SIZE + 1}"{length}>{markup(text)}</text>\n'


def _numbers(node: Node, tree: Tree) -> tuple[str, str]:
    """The numbers of a frame for the script and, in words, for its title."""
    data = f"{node.depth} {node.start} {node.total} {node.own}"
    line = f"{human(node.total, tree.value_type.unit)} · {share(node.total, tree.total)}"
    if tree.counted:
        return f"{data} {node.events}", f"{line} · {plural(node.events, 'time')}"
    return data, line


def _origin(key: Key) -> str:
    if key.kind == "root":
        return ""
    return escape(" · ".join(part for part in (svg_color.LABELS.get(key.kind, key.kind), key.module) if part))


def _line(css: str, y: float, text: str, width: int, char_width: float = _PROSE_WIDTH) -> str:
    text, _bound = fit(printable(text), width - 2 * _PAD, char_width)
    return f'<text class="{css}" x="{_PAD}" y="{y}">{escape(text)}</text>\n'


def _legend(tree: Tree) -> str:
    kinds = {node.key.kind for node in tree.nodes}
    parts = []
    x = _PAD
    for kind, label in svg_color.LABELS.items():
        if kind in kinds:
            css = svg_color.legend_class(kind)
            parts.append(f'<rect class="{css}" x="{x}" y="61" width="12" height="12" rx="2"/>')
            parts.append(f'<text class="line" x="{x + 17}" y="71">{label}</text>')
            x += 17 + round(len(label) * _PROSE_WIDTH) + 14
    return f'<g id="legend">{"".join(parts)}</g>\n'


def _subtitle(profile: Profile, tree: Tree) -> str:
    value_type = tree.value_type
    parts = [profile.host]
    if profile.start_ns:
        parts.append(time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(profile.start_ns // 10**9)))
    if profile.duration_ns:
        parts.append(f"{duration(profile.duration_ns)} long")
    if tree.nodes:
        parts.append(f"{human(tree.total, value_type.unit)} {value_type.name}")
        if tree.counted:
            parts.append(plural(tree.nodes[0].events, "time"))
    return " · ".join(part for part in parts if part)


def _nothing(profile: Profile) -> str:
    if not profile.samples:
        return "Nothing to show: the profile has no samples."
    return f"Nothing to show: {plural(len(profile.samples), 'sample')}, none with a value above 0."


def _notes(profile: Profile, tree: Tree, svg: SvgOptions) -> Iterator[tuple[str, str]]:
    """Class and text of the lines under the graph: first what is missing in it."""
    lost = {name: number for name, number in profile.lost.items() if number}
    if lost:
        yield "warning", "lost: " + ", ".join(f"{count(number)} {name}" for name, number in lost.items())
    else:
        yield "line", "lost: 0" if profile.lost else "lost: not recorded"
    if tree.hidden:
        yield "line", f"branches narrower than {svg.min_width:g} px, not drawn: {count(tree.hidden)}"
    notes: Iterable[str] = [*svg.notes, *profile.comments]
    notes = [note for note in notes if note]
    for note in notes[:_MAX_NOTES]:
        yield "line", note
    if len(notes) > _MAX_NOTES:
        yield "line", f"{len(notes) - _MAX_NOTES} more notes are in the profile"


def _script() -> str:
    parts = "".join(_resource(f"svg_{part}.js") for part in ("tree", "draw", "search", "page"))
    # Copied into an HTML page, the graph stays a picture: neither window nor address are its own there.
    return f'if (document.documentElement.localName === "svg") (function () {{\n"use strict";\n{parts}}})();\n'


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")
