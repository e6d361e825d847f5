"""Writes a flame graph as one self-contained SVG file, interactive where scripts may run.

The picture is complete without its script (in an <img>, in print). The script is a constant; names
are only ever XML text, which it reads back from the document. The file brings a policy that lets a browser run that
script only and load nothing. One frame of the graph is::

    <rect class="n3" x=… y=… width=… height=… data-v="DEPTH START TOTAL OWN [COUNT]">
    <title>NAME \\n value · share · count \\n kind · module</title></rect>

in pre-order, START, TOTAL and OWN in the unit of the value type. In a differential graph DELTA and OWN DELTA
(after minus before) stand in place of COUNT.
"""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import resources
from typing import BinaryIO

from ..errors import StallscopeError
from ..flame import Key, Node, Tree, build
from ..model import Profile
from ..options import WriteOptions, value_index
from ..text import printable
from ..transforms.diff import AFTER, BEFORE
from ..units import count, duration, plural, share
from . import svg_color, svg_palette
from .svg_palette import Palette
from .svg_text import Labels, change, escape, fit, human, markup, unit_data

_PAD = 12
_HEADER = 86
_LINE = 17
"""Height of a line of notes."""
_PROSE_WIDTH = 7.2
"""Mean advance, on the safe side, of the 12 px sans-serif that title and notes are set in."""
_MAX_NOTES = 8
_BATCH = 4096
_WIDTHS = (200, 20_000)
_FONT_SIZES = (6, 40)
_FONT = re.compile(r"[A-Za-z0-9 _-]{1,60}\Z")


@dataclass(frozen=True)
class _Graph:
    """All that a part of the document may need to know."""

    profile: Profile
    tree: Tree
    options: WriteOptions
    palette: Palette
    labels: Labels


def write(profile: Profile, file: BinaryIO, options: WriteOptions) -> None:
    """Writes ``profile`` to ``file`` (UTF-8).

    Raises StallscopeError (exit code 2) when ``options`` ask for a value, a palette or a size that cannot be had.
    """
    _check(options)
    drawn = profile.value_types[value_index(profile, options)].name
    palette = svg_palette.choose(options.palette, profile, drawn)
    minimum = max(options.min_width / (options.width - 2 * _PAD), options.min_share)
    tree = build(profile, options, minimum=minimum, label=palette.label)
    if options.unit:
        tree.value_type = tree.value_type._replace(unit=options.unit)
    graph = _Graph(profile, tree, options, palette, Labels(options.font, options.font_size))
    batch: list[str] = []
    for part in _document(graph):
        batch.append(part)
        if len(batch) >= _BATCH:
            file.write("".join(batch).encode())
            batch.clear()
    file.write("".join(batch).encode())


def _check(options: WriteOptions) -> None:
    for name, value, (low, high) in (("width", options.width, _WIDTHS), ("font size", options.font_size, _FONT_SIZES)):
        if not low <= value <= high:
            raise StallscopeError(f"a {name} of {value} px cannot be drawn", f"choose {low} to {high}", exit_code=2)
    if not (0 <= options.min_width <= options.width and 0 <= options.min_share <= 1):
        raise StallscopeError(
            f"a least width of {options.min_width:g} px cannot be drawn", f"choose 0 to {options.width}", exit_code=2
        )
    if options.font and not _FONT.match(options.font):
        raise StallscopeError(
            f"{options.font!r} is no name of a font", "use letters, digits, spaces and - only", exit_code=2
        )


def _document(graph: _Graph) -> Iterator[str]:
    tree, options = graph.tree, graph.options
    title = options.title or graph.profile.title or "Flame graph"
    notes = list(_notes(graph))
    notes_top = _HEADER + max(tree.levels, 3) * graph.labels.row + 22
    height = notes_top + len(notes) * _LINE
    script = _script() if tree.nodes else ""
    yield '<?xml version="1.0" encoding="UTF-8" standalone="no"?>\n'
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" version="1.1" width="{options.width}" height="{height}"'
        f' viewBox="0 0 {options.width} {height}" role="figure" aria-labelledby="title" {_data(graph)}>\n'
    )
    yield f'<title id="title">{escape(title)}</title>\n'
    yield _policy(script)
    yield f"<style>{_resource('svg.css')}{graph.labels.css()}{graph.palette.css()}</style>\n"
    yield f'<rect id="paper" width="{options.width}" height="{height}"/>\n<g id="page">\n'
    yield _line("heading", 30, title, options.width, _PROSE_WIDTH * 18 / 12)
    yield _line("line", 50, options.subtitle or _subtitle(graph), options.width)
    yield _legend(graph)
    if not tree.nodes:
        yield _line("nothing", _HEADER + 2 * graph.labels.row, _nothing(graph.profile), options.width)
    yield from _frames(graph)
    for i, (css, text) in enumerate(notes):
        yield _line(css, notes_top + i * _LINE, text, options.width)
    yield "</g>\n"
    if script:
        yield f"<script><![CDATA[{script}]]></script>\n"
    yield "</svg>\n"


def _data(graph: _Graph) -> str:
    """What the script has to know about all frames."""
    tree, labels = graph.tree, graph.labels
    data = f'data-pad="{_PAD}" data-base="{labels.base}" {unit_data(tree.value_type.unit)}'
    if graph.options.inverted:
        data += ' data-inverted="1"'
    if tree.differential:
        data += f' data-drawn="{tree.value_type.name}"'
    return data


def _policy(script: str) -> str:
    """For browsers: nothing is loaded and nothing runs but our script, whatever a name may contain."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    runs = f"'sha256-{digest}'" if script else "'none'"
    # With a prefix: an HTML parser, into whose page the picture may be pasted, would leave the SVG at a plain <head>.
    return (
        '<metadata><h:head xmlns:h="http://www.w3.org/1999/xhtml"><h:meta http-equiv="Content-Security-Policy"'
        f" content=\"default-src 'none'; script-src {runs}; style-src 'unsafe-inline'; base-uri 'none'\"/>"
        "</h:head></metadata>\n"
    )


def _frames(graph: _Graph) -> Iterator[str]:
    """Boxes, then labels: a label lies over every box and lets the pointer through."""
    tree, options, labels = graph.tree, graph.options, graph.labels
    scale = (options.width - 2 * _PAD) / max(tree.total, 1)
    texts: dict[Key, tuple[str, str]] = {}
    drawn_labels = []
    yield '<g id="frames">\n'
    for node in tree.nodes:
        key = node.key
        if key not in texts:
            texts[key] = (escape(key.name), _origin(key))
        name, origin = texts[key]
        row = node.depth if options.inverted else tree.levels - 1 - node.depth
        x = _PAD + node.start * scale
        y = _HEADER + row * labels.row
        width = node.total * scale
        data, line = _numbers(node, tree)
        # The gap between neighbours comes off the box, but not where the box is little more than it.
        drawn = width - 1 if width > 4 else width
        yield (
            f'<rect class="{graph.palette.css_class(node)}" x="{x:.2f}" y="{y}" width="{drawn:.2f}"'
            f' height="{labels.row - 1}" data-v="{data}"><title>{name}\n{markup(line)}\n{origin}</title></rect>\n'
        )
        if width > 2 * labels.char_width:
            drawn_labels.append(labels.text(printable(key.name), x, y, width))
    yield '</g>\n<g id="labels">\n'
    yield from drawn_labels
    yield "</g>\n"


def _numbers(node: Node, tree: Tree) -> tuple[str, str]:
    """The numbers of a frame for the script and, in words, for its title."""
    data = f"{node.depth} {node.start} {node.total} {node.own}"
    line = f"{human(node.total, tree.value_type.unit)} · {share(node.total, tree.total)}"
    if tree.differential:
        return f"{data} {node.delta} {node.own_delta}", f"{line} · {_compared(node, tree)}"
    if tree.counted:
        return f"{data} {node.events}", f"{line} · {plural(node.events, 'time')}"
    return data, line


def _compared(node: Node, tree: Tree) -> str:
    """``before 900 ms: +300 ms (+33.3 %)``; where before is drawn, ``after 1.20 s: +300 ms (+33.3 %)``."""
    drawn, unit = tree.value_type.name, tree.value_type.unit
    after, before = svg_palette.sides(node, drawn)
    name, other = (AFTER, after) if drawn == BEFORE else (BEFORE, before)
    return f"{name} {human(other, unit)}: {change(after, before, unit)}"


def _origin(key: Key) -> str:
    if key.kind == "root":
        return ""
    return escape(" · ".join(part for part in (svg_color.LABELS.get(key.kind, key.kind), key.module) if part))


def _line(css: str, y: float, text: str, width: int, char_width: float = _PROSE_WIDTH) -> str:
    text, _bound = fit(printable(text), width - 2 * _PAD, char_width)
    return f'<text class="{css}" x="{_PAD}" y="{y}">{escape(text)}</text>\n'


def _legend(graph: _Graph) -> str:
    """As many swatches as the width has room for."""
    parts = []
    x = _PAD
    for css, text in graph.palette.legend(graph.tree):
        label, _ = fit(printable(text), 220, _PROSE_WIDTH)
        cells = sum(1 if char.isascii() else 2 for char in label)
        end = x + 17 + round(cells * _PROSE_WIDTH)
        if end > graph.options.width - _PAD:
            break
        parts.append(f'<rect class="{css}" x="{x}" y="61" width="12" height="12" rx="2"/>')
        parts.append(f'<text class="line" x="{x + 17}" y="71">{markup(label)}</text>')
        x = end + 14
    return f'<g id="legend">{"".join(parts)}</g>\n'


def _subtitle(graph: _Graph) -> str:
    profile, tree = graph.profile, graph.tree
    value_type = tree.value_type
    parts = [profile.host]
    if profile.start_ns:
        parts.append(time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(profile.start_ns // 10**9)))
    if profile.duration_ns:
        parts.append(f"{duration(profile.duration_ns)} long")
    if tree.nodes:
        parts.append(f"{human(tree.total, value_type.unit)} {value_type.name}")
        if tree.differential:
            parts.append(_compared(tree.nodes[0], tree))
        if tree.counted:
            parts.append(plural(tree.nodes[0].events, "time"))
    return " · ".join(part for part in parts if part)


def _nothing(profile: Profile) -> str:
    if not profile.samples:
        return "Nothing to show: the profile has no samples."
    return f"Nothing to show: {plural(len(profile.samples), 'sample')}, none with a value above 0."


def _notes(graph: _Graph) -> Iterator[tuple[str, str]]:
    """Class and text of the lines under the graph: first what is missing in it."""
    profile, tree, options = graph.profile, graph.tree, graph.options
    lost = {name: number for name, number in profile.lost.items() if number}
    if lost:
        yield "warning", "lost: " + ", ".join(f"{count(number)} {name}" for name, number in lost.items())
    else:
        yield "line", "lost: 0" if profile.lost else "lost: not recorded"
    if tree.hidden:
        gone = f", or with nothing {tree.value_type.name}" if tree.differential else ""
        limit = f"{options.min_width:g} px" + (f" or {100 * options.min_share:g} %" if options.min_share else "")
        yield "line", f"branches narrower than {limit}{gone}, not drawn: {count(tree.hidden)}"
    notes: Iterable[str] = [*options.notes, *profile.comments]
    notes = [note for note in notes if note]
    for note in notes[:_MAX_NOTES]:
        yield "line", note
    if len(notes) > _MAX_NOTES:
        yield "line", f"{len(notes) - _MAX_NOTES} more notes are in the profile"


def _script() -> str:
    parts = _resource("values.js") + "".join(_resource(f"svg_{part}.js") for part in ("tree", "draw", "search", "page"))
    # Copied into an HTML page, the graph stays a picture: neither window nor address are its own there.
    return f'\nif (document.documentElement.localName === "svg") (function () {{\n"use strict";\n{parts}}})();\n'


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")
