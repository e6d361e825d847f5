"""Writes one self-contained HTML page: flame graph, icicle and table of all values, for graphs of any size.

The page is drawn on a canvas by its script. Everything from the profile is in one block of base64 (`data`), which
the script reads and shows only as text; the Content-Security-Policy allows only this script and this style sheet, by
their hashes: no requests, no other scripts, no frames, no forms.
"""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import BinaryIO

from ...model import Profile
from .. import base
from ..base.options import WriteOptions, value_index
from ..colors import palette as palettes
from ..svg.text import escape
from ..waits_for.section import section
from .data import pack

_SCRIPTS = ("values", "tree", "draw", "table", "page", "input")
_LINE = 57_000
"""Bytes encoded in one line of base64; a multiple of 3. Editors do not cope well with lines of megabytes."""


def write(profile: Profile, file: BinaryIO, options: WriteOptions) -> None:
    """Writes ``profile`` to ``file`` (UTF-8). Raises StallscopeError when ``options`` do not fit it."""
    drawn = profile.value_types[value_index(profile, options)].name
    palette = palettes.choose(options.palette, profile, drawn, negate=options.negate, roots=options.roots)
    block = pack(profile, options, palette)
    style = _resource("page.css") + palette.css()
    body = _resource("body.html").replace("<footer", f"{section(profile, options)}<footer")
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
    parts = _shared("values.js") + "".join(_resource(f"{part}.js") for part in _SCRIPTS)
    return f'(function () {{\n"use strict";\n{parts}}})();\n'


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _shared(name: str) -> str:
    return resources.files(base).joinpath(name).read_text("utf-8")
