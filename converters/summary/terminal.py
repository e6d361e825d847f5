"""The terminal, pipe or file that a text of tables is for: its width, what it can show, and a console for it."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

ENDLESS = 100_000
"""Width of a pipe: nothing is wrapped, so that grep and cut work."""
_ASCII = str.maketrans({"→": "->", "│": "|", "≤": "<=", "×": "x", "…": "...", "µ": "u"})
_TRAILING = re.compile(r" +(?=\n)")


def has_color(file: TextIO) -> bool:
    """Whether ``file`` is a terminal that shows colours, and the user wants them."""
    return file.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def printed(blocks: Iterable[RenderableType], width: int, color: bool) -> str:
    """The text of these blocks, without spaces at the ends of lines."""
    buffer = io.StringIO()
    console = _console(buffer, width, color)
    for block in blocks:
        console.print(block)
    return _TRAILING.sub("", buffer.getvalue())


def _console(buffer: TextIO, width: int, color: bool) -> Console:
    from rich.console import Console

    return Console(
        file=buffer,
        width=width,
        color_system="standard" if color else None,
        force_terminal=color,
        no_color=False,
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=False,
        legacy_windows=False,
    )


def size_of(file: TextIO) -> tuple[int, int]:
    """Columns and lines of a terminal; 0 lines are not known."""
    try:
        size = os.get_terminal_size(file.fileno())
    except (OSError, ValueError):
        return 80, 0
    return size.columns or 80, size.lines


def encodable(text: str, encoding: str | None) -> str:
    """``text``, in ASCII if ``encoding`` has not all of its characters."""
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        codec = encoding or "utf-8"
        return text.translate(_ASCII).encode(codec, errors="backslashreplace").decode(codec)
    return text
