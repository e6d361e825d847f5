"""Writes a flame graph as one self-contained SVG file, interactive where scripts may run.

The picture is complete without its script (in an <img>, in print). The script is a constant; names
are only used as XML text, which the script reads from the document. The file contains a policy that lets a browser run
only that script and load nothing. One frame of the graph is::

    <rect class="n3" x=… y=… width=… height=… data-v="DEPTH START TOTAL OWN [COUNT]">
    <title>NAME \\n value · share · count \\n kind · module</title></rect>

in pre-order, with START, TOTAL and OWN in the unit of the value type. In a differential graph DELTA and OWN DELTA
(after minus before) replace COUNT. Frames too narrow to be seen are text (`frames`).
"""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Iterable, Iterator
from importlib import resources
from typing import BinaryIO

from ...base.errors import StallscopeError
from ...base.text import printable
from ...base.units import count, counted, duration, plural
from ...flame import chart as flame_chart
from ...flame import tree as flame
from ...flame.gone import undrawn
from ...model import Profile
from ...phrases.remarks import worded
from .. import base
from ..base.options import WriteOptions, said_to_be_missing, value_index
from ..colors import background as backgrounds
from ..colors import palette as palettes
from .axis import axis
from .frames import PAD, Frames, Graph
from .text import Labels, Unit, escape, fit, markup

_LINE = 17
"""Height of a line of notes."""
_PROSE_WIDTH = 7.2
"""Mean advance, rounded up, of the 12 px sans-serif font of title and notes."""
_MAX_NOTES = 8
_BATCH = 4096
_WIDTHS = (200, 20_000)
_FONT_SIZES = (6, 40)
_MAX_HEIGHT = 200
_FACTORS = (1e-12, 1e12)
_ROOM = 3
"""Px that a row needs in addition to the size of its font."""
_SCRIPTS = ("tree", "axis", "draw", "search", "page")
_NARROW_CALLS = " (-o NAME.trace.json has all of them, for ui.perfetto.dev; --min-width 0 keeps them for zooming in)"
_FONT = re.compile(r"[A-Za-z0-9 _-]{1,60}\Z")


def write(profile: Profile, file: BinaryIO, options: WriteOptions) -> None:
    """Writes ``profile`` to ``file`` (UTF-8).

    Raises StallscopeError (exit code 2) when ``options`` request an unavailable value, palette or size.
    """
    graph = _graph(profile, options)
    batch: list[str] = []
    for part in _document(graph):
        batch.append(part)
        if len(batch) >= _BATCH:
            file.write("".join(batch).encode())
            batch.clear()
    file.write("".join(batch).encode())


def _graph(profile: Profile, options: WriteOptions) -> Graph:
    _check(options)
    drawn = profile.value_types[value_index(profile, options)].name
    name = options.palette
    if not name and options.flamechart and flame_chart.shows_states(profile.timeline):
        name = "state"
    palette = palettes.choose(name, profile, drawn, negate=options.negate, roots=options.roots)
    minimum = max(options.min_width / (options.width - 2 * PAD), options.min_share)
    build = flame_chart.build if options.flamechart else flame.build
    tree = build(profile, options, minimum=minimum, label=palette.label, whole=options.total)
    if tree.differential and options.total:
        raise StallscopeError("--total does not go with a comparison", "compare with --normalize", exit_code=2)
    if options.unit:
        tree.value_type = tree.value_type._replace(unit=options.unit)
    is_count = tree.value_type.unit == "count" and options.factor == 1
    unit = Unit(tree.value_type.unit, options.factor, flame.things(tree.value_type) if is_count else "")
    return Graph(profile, tree, options, palette, Labels(options.font, options.font_size, options.height), unit)


def _check(options: WriteOptions) -> None:
    labels = Labels(options.font, options.font_size, options.height)
    for name, value, (low, high) in (
        ("width", options.width, _WIDTHS),
        ("font size", options.font_size, _FONT_SIZES),
        ("height of the rows", labels.row, (options.font_size + _ROOM, _MAX_HEIGHT)),
    ):
        if not low <= value <= high:
            raise StallscopeError(f"a {name} of {value} px cannot be drawn", f"choose {low} to {high}", exit_code=2)
    if not (0 <= options.min_width <= options.width and 0 <= options.min_share <= 1):
        raise StallscopeError(
            f"a least width of {options.min_width:g} px cannot be drawn", f"choose 0 to {options.width}", exit_code=2
        )
    least, most = _FACTORS
    if not least <= options.factor <= most:
        raise StallscopeError(
            f"a factor of {options.factor:g} makes no sense", f"choose {least:g} to {most:g}", exit_code=2
        )
    if options.font and not _FONT.match(options.font):
        raise StallscopeError(
            f"{options.font!r} is no name of a font", "use letters, digits, spaces and - only", exit_code=2
        )


def _document(graph: Graph) -> Iterator[str]:
    tree, options = graph.tree, graph.options
    title = options.title or graph.profile.title or ("Flame chart" if options.flamechart else "Flame graph")
    notes = list(_notes(graph))
    notes_top = graph.top + graph.height + 22
    height = notes_top + len(notes) * _LINE
    script = _script() if tree.nodes else ""
    background = backgrounds.css(options.background)
    yield '<?xml version="1.0" encoding="UTF-8" standalone="no"?>\n'
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" version="1.1" width="{options.width}" height="{height}"'
        f' viewBox="0 0 {options.width} {height}" preserveAspectRatio="xMidYMin" role="figure"'
        f' aria-labelledby="title" {_data(graph)}>\n'
    )
    yield f'<title id="title">{escape(title)}</title>\n'
    yield _policy(script)
    yield f"<style>{_resource('page.css')}{background}{graph.labels.css()}{graph.palette.css()}</style>\n"
    yield f'<rect id="paper" width="{options.width}" height="{height}"/>\n<g id="page">\n'
    yield _line("heading", 30, title, options.width, _PROSE_WIDTH * 18 / 12)
    yield _line("line", 50, options.subtitle or _subtitle(graph), options.width)
    yield _legend(graph)
    if not tree.nodes:
        yield _line("nothing", graph.top + 2 * graph.labels.row, _nothing(graph.profile), options.width)
    if tree.timed and tree.nodes:
        yield axis(tree.total, PAD, options.width - PAD, graph.top, graph.unit)
    frames = Frames(graph)
    yield from frames.elements()
    for i, (css, text) in enumerate(notes):
        yield _line(css, notes_top + i * _LINE, text, options.width)
    yield "</g>\n"
    yield frames.names()
    if script:
        yield f"<script><![CDATA[{script}]]></script>\n"
    yield "</svg>\n"


def _data(graph: Graph) -> str:
    """Data about all frames for the script."""
    tree, labels = graph.tree, graph.labels
    data = f'data-pad="{PAD}" data-base="{labels.base}" {graph.unit.data()}'
    if tree.counted:
        data += f' data-counted="{escape(tree.counted)}"'
    if graph.options.inverted:
        data += ' data-inverted="1"'
    if tree.timed:
        data += f' data-chart="{graph.top}"'
    if tree.differential:
        data += f' data-drawn="{tree.value_type.name}"'
    return data


def _policy(script: str) -> str:
    """Policy for browsers: nothing is loaded and nothing runs except our script, whatever a name may contain."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    runs = f"'sha256-{digest}'" if script else "'none'"
    # With a prefix: an HTML parser, if the picture is pasted into a page, would leave the SVG at a plain <head>.
    return (
        '<metadata><h:head xmlns:h="http://www.w3.org/1999/xhtml"><h:meta http-equiv="Content-Security-Policy"'
        f" content=\"default-src 'none'; script-src {runs}; style-src 'unsafe-inline'; base-uri 'none'\"/>"
        "</h:head></metadata>\n"
    )


def _line(css: str, y: float, text: str, width: int, char_width: float = _PROSE_WIDTH) -> str:
    text, _bound = fit(printable(text), width - 2 * PAD, char_width)
    return f'<text class="{css}" x="{PAD}" y="{y}">{escape(text)}</text>\n'


def _legend(graph: Graph) -> str:
    """Swatches of the legend, as many as fit into the width."""
    parts = []
    x = PAD
    for css, text in graph.palette.legend(graph.tree):
        label, _ = fit(printable(text), 220, _PROSE_WIDTH)
        cells = sum(1 if char.isascii() else 2 for char in label)
        end = x + 17 + round(cells * _PROSE_WIDTH)
        if end > graph.options.width - PAD:
            break
        parts.append(f'<rect class="{css}" x="{x}" y="61" width="12" height="12" rx="2"/>')
        parts.append(f'<text class="line" x="{x + 17}" y="71">{markup(label)}</text>')
        x = end + 14
    return f'<g id="legend">{"".join(parts)}</g>\n'


def _subtitle(graph: Graph) -> str:
    profile, tree = graph.profile, graph.tree
    parts = [profile.host]
    if profile.start_ns:
        parts.append(time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(profile.start_ns // 10**9)))
    if profile.duration_ns and not tree.timed:
        parts.append(f"{duration(profile.duration_ns)} long")
    if tree.nodes:
        parts.append(_amount(graph))
        if tree.timed:
            parts.append(plural(len(tree.bands), "track"))
        if tree.differential:
            parts.append(graph.compared(tree.nodes[0]))
        if tree.counted:
            parts.append(counted(tree.nodes[0].events, printable(tree.counted)))
    return " · ".join(part for part in parts if part)


def _amount(graph: Graph) -> str:
    """Amount that was measured: ``150 ms wall``; in a chart ``150 ms of wall``; with --total ``150 ms of 200 ms
    wall``."""
    tree, unit = graph.tree, graph.unit
    name, measured = tree.value_type.name, unit.human(tree.measured)
    if graph.options.total:
        return f"{measured} of {unit.human(tree.total)} {name}"
    has_unit = unit.name not in ("", "count")
    return f"{measured} of {name}" if tree.timed and has_unit else f"{measured} {name}"


def _nothing(profile: Profile) -> str:
    if not profile.samples:
        return "Nothing to show: the profile has no samples."
    return f"Nothing to show: {plural(len(profile.samples), 'sample')}, none with a value above 0."


def _notes(graph: Graph) -> Iterator[tuple[str, str]]:
    """Class and text of the lines below the graph, beginning with what is missing from it."""
    profile, tree, options = graph.profile, graph.tree, graph.options
    text, is_warning = said_to_be_missing(profile, options)
    yield "warning" if is_warning else "line", text
    if tree.hidden:
        gone = f", or with nothing {tree.value_type.name}" if tree.differential else ""
        limit = f"{options.min_width:g} px" + (f" or {100 * options.min_share:g} %" if options.min_share else "")
        what = "calls" if tree.timed else "branches"
        remedy = _NARROW_CALLS if tree.timed and (options.min_width or options.min_share) else ""
        yield "line", f"{what} narrower than {limit}{gone}, not drawn: {count(tree.hidden)}{remedy}"
    if without_width := undrawn(profile, options, graph.unit.human):
        yield "line", without_width
    notes: Iterable[str] = [*options.notes, *worded(profile.comments)]
    notes = [note for note in notes if note]
    for note in notes[:_MAX_NOTES]:
        yield "line", note
    if len(notes) > _MAX_NOTES:
        yield "line", f"{len(notes) - _MAX_NOTES} more notes are in the profile"


def _script() -> str:
    parts = _shared("values.js") + "".join(_resource(f"{part}.js") for part in _SCRIPTS)
    # Copied into an HTML page, the graph stays a static picture: window and address are not its own there.
    return f'\nif (document.documentElement.localName === "svg") (function () {{\n"use strict";\n{parts}}})();\n'


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _shared(name: str) -> str:
    return resources.files(base).joinpath(name).read_text("utf-8")
