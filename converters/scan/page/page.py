"""Writes the page of a scan: one self-contained HTML file, which makes no request.

Names and other texts of the traced host are in packed blocks (`data`, `graph`, `lanes`), and the script shows them as
text only. The graph is that of the HTML output (`writers.html`), with its scripts. The Content-Security-Policy allows
this script and this style sheet alone, by their hashes.
"""

from __future__ import annotations

import json
import zlib
from importlib import resources
from typing import BinaryIO

from ...base.text import printable
from ...base.units import duration
from ...model import Profile
from ...writers.base.options import WriteOptions
from ...writers.colors import palette as palettes
from ...writers.html import data as graphs
from ...writers.html import writer as html
from ...writers.svg.text import escape
from ..cost import cost_lines
from ..report import Report
from ..scanned import scanned
from . import lanes
from .data import page_data
from .graph import ROOTS, graph_profile
from .groups import groups_of

_SCRIPTS = (
    "tables",
    "report",
    "evidence",
    "strip",
    "matrix",
    "jobs",
    "meetings",
    "steps",
    "host",
    "lanes",
    "drawing",
    "details",
    "pointer",
    "open",
)
_LEVEL = 6
MOST_BY_STATE = 50_000
"""Stacks of a graph that is coloured by state, which takes memory and time; of more, it is by kind of code."""


def lanes_block(profile: Profile, report: Report) -> bytes:
    """The events of threads over time, packed for a page; b"" if none were recorded."""
    return lanes.pack(profile.scheduling, groups_of(report)) if profile.scheduling is not None else b""


def write(profile: Profile, report: Report, file: BinaryIO, lanes_packed: bytes) -> None:
    """Writes the page of ``report``, which is that of ``profile``, in UTF-8.

    ``lanes_packed``: a block of `lanes_block`, maybe from a file; b"": there is none. It is not looked into: the page
    says so if it is damaged.
    """
    groups = groups_of(report)
    shown, told = graph_profile(profile, groups)
    data = page_data(profile, report, groups)
    if told:
        data["notes"].append(told)
    blocks = {"data": zlib.compress(json.dumps(data, separators=(",", ":")).encode(), _LEVEL)}
    style = _resource("page.css")
    if shown.value_types:
        options = WriteOptions(roots=ROOTS, inverted=True)
        by = "" if len(shown.samples) <= MOST_BY_STATE else "calm"
        palette = palettes.choose(by, shown, shown.value_types[0].name, roots=ROOTS)
        blocks["graphdata"] = graphs.pack(shown, options, palette)
        style = html.graph_style(palette) + style
    if lanes_packed:
        blocks["lanesdata"] = lanes_packed
    script = html.graph_script() + "{\n" + "".join(_resource(f"{part}.js") for part in _SCRIPTS) + "}\n"
    body = _resource("body.html").replace("<!--answer-->", _answer(report)).replace("<!--cost-->", _cost(report))
    html.write_page(file, html.Page(escape(_title(report)), style, body, html.as_function(script), blocks))


def _title(report: Report) -> str:
    host = report.summary.host
    return f"Scan of {host}" if host else "Scan"


def _answer(report: Report) -> str:
    """The answer and what was scanned: there without the script, too."""
    summary = report.summary
    title = f'<h1 id="title">{escape(_title(report))}</h1>\n'
    host = f'<p id="scanned">Scanned {escape(scanned(report))} for {duration(summary.duration_ns)}.</p>\n'
    sentences = "".join(f"<p>{escape(printable(each))}</p>\n" for each in summary.answer)
    return f'{title}{host}<div id="answer">\n{sentences}</div>\n'


def _cost(report: Report) -> str:
    """Sentences on what the scan cost, and what was left out because of that."""
    return "".join(f'<p class="cost">{escape(printable(each))}</p>\n' for each in cost_lines(report.summary.comments))


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")
