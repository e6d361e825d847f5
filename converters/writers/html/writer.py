"""Writes one self-contained HTML page: flame graph, icicle and table of all values, for graphs of any size.

The page is drawn on a canvas by its script. Everything from the profile is in one block of base64 (`data`), which
the script reads and shows only as text; the Content-Security-Policy allows only this script and this style sheet, by
their hashes: no requests, no other scripts, no frames, no forms.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import BinaryIO, NamedTuple

from ...model import Profile
from .. import base
from ..base.options import WriteOptions, value_index
from ..colors import palette as palettes
from ..svg.text import escape
from ..waits_for.section import section
from .data import pack

_SCRIPTS = ("values", "tree", "draw", "table", "page", "input")
"""Scripts of the graph."""
_LINE = 57_000
"""Bytes encoded in one line of base64; a multiple of 3. Editors do not cope well with lines of megabytes."""


class Around(NamedTuple):
    """Things around a graph on a page of another kind."""

    head: str = ""
    """Elements above it, escaped."""
    style: str = ""


def write(profile: Profile, file: BinaryIO, options: WriteOptions) -> None:
    """Writes ``profile`` to ``file`` (UTF-8). Raises StallscopeError when ``options`` do not fit it."""
    write_within(profile, file, options, Around())


def write_within(profile: Profile, file: BinaryIO, options: WriteOptions, around: Around) -> None:
    """Writes a page of another kind with the graph of ``profile`` on it. StallscopeError like `write`."""
    drawn = profile.value_types[value_index(profile, options)].name
    palette = palettes.choose(options.palette, profile, drawn, negate=options.negate, roots=options.roots)
    block = pack(profile, options, palette)
    head, more = around
    style = graph_style(palette) + more
    body = (
        _resource("body.html")
        .replace("<body>\n", f"<body>\n{head}")
        .replace("<footer", f"{section(profile, options)}<footer")
    )
    script = as_function(graph_script() + _resource("start.js"))
    title = escape(options.title or profile.title or "Flame graph")
    write_page(file, Page(title, style, body, script, {"data": block}))


class Page(NamedTuple):
    """Parts of a page. ``title`` and ``body`` are escaped."""

    title: str
    style: str
    body: str
    script: str
    blocks: Mapping[str, bytes]
    """Packed data by the id of its element; they come after the body, before the script."""


def write_page(file: BinaryIO, page: Page) -> None:
    """Writes a page that makes no request."""
    script, style = _hash(page.script), _hash(page.style)
    policy = f"default-src 'none'; script-src {script}; style-src {style}; base-uri 'none'; form-action 'none'"
    file.write(
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{page.title}</title>\n<style>{page.style}</style>\n</head>\n{page.body}".encode()
    )
    for name, block in page.blocks.items():
        file.write(f'<script type="application/octet-stream" id="{name}">\n'.encode())
        for start in range(0, len(block), _LINE):
            file.write(base64.b64encode(block[start : start + _LINE]) + b"\n")
        file.write(b"</script>\n")
    file.write(f"<script>{page.script}</script>\n</body>\n</html>\n".encode())


def graph_script() -> str:
    """The scripts of the graph, without what starts them."""
    return _shared("values.js") + "".join(_resource(f"{part}.js") for part in _SCRIPTS)


def as_function(parts: str) -> str:
    """Scripts as one, whose names nobody else sees."""
    return f'(function () {{\n"use strict";\n{parts}}})();\n'


def graph_style(palette: palettes.Palette) -> str:
    """The style of the graph and of what is around it."""
    return _resource("page.css") + palette.css()


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _shared(name: str) -> str:
    return resources.files(base).joinpath(name).read_text("utf-8")
