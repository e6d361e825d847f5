"""Writes one self-contained HTML page: flame graph, icicle and table of all values, for graphs of any size.

The page is drawn on a canvas by its script. All that comes from the profile is one block of base64 (`html_data`), which
the script reads and shows as text only; its Content-Security-Policy allows this script and this style sheet, by their
hashes, and nothing else: no request, no other script, no frame, no form.
"""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import BinaryIO

from ..model import Profile
from ..options import WriteOptions, value_index
from . import svg_palette
from .html_data import pack
from .svg_text import escape

_SCRIPTS = ("values", "tree", "draw", "table", "page", "input")
_LINE = 57_000
"""Bytes that one line of base64 stands for; a multiple of 3. Editors dislike lines of megabytes."""


def write(profile: Profile, file: BinaryIO, options: WriteOptions) -> None:
    """Writes ``profile`` to ``file`` (UTF-8). Raises StallscopeError when ``options`` do not fit it."""
    drawn = profile.value_types[value_index(profile, options)].name
    palette = svg_palette.choose(options.palette, profile, drawn, negate=options.negate)
    block = pack(profile, options, palette)
    style = _resource("html.css") + palette.css()
    body = _resource("html_body.html")
    script = _script()
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    )
    title = escape(options.title or profile.title or "Flame graph")
    file.write(
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n{body}"
        '<script type="application/octet-stream" id="data">\n'.encode()
    )
    for start in range(0, len(block), _LINE):
        file.write(base64.b64encode(block[start : start + _LINE]) + b"\n")
    file.write(f"</script>\n<script>{script}</script>\n</body>\n</html>\n".encode())


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _script() -> str:
    parts = _resource("values.js") + "".join(_resource(f"html_{part}.js") for part in _SCRIPTS)
    return f'(function () {{\n"use strict";\n{parts}}})();\n'


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")
