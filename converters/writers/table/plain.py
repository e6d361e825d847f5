"""Tables for a terminal: plain text, numbers aligned, names last.

On a terminal, long names lose their middle, so that a row is a line; files and pipes get whole names.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import BinaryIO

from ...base.text import printable, shortened
from ...model import Profile
from ..base.options import WriteOptions
from .rows import Table, summary, tables

_GAP = "  "
_LEAST = 20
"""Characters of a name that are shown on the narrowest terminals."""


def write(profile: Profile, file: BinaryIO, options: WriteOptions) -> None:
    """Writes the tables that ``options`` asks for. Raises StallscopeError when they do not fit the profile."""
    wanted = list(tables(profile, options))
    width = shutil.get_terminal_size((0, 0)).columns if file.isatty() else 0
    title = printable(options.title or profile.title)
    head = [*([title] if title else []), *summary(profile, options)]
    file.write("".join(f"{line}\n" for line in head).encode())
    for table in wanted:
        file.write(f"\n{table.heading}\n".encode())
        file.writelines(f"{line}\n".encode() for line in lines(table, width))


def lines(table: Table, width: int = 0) -> Iterator[str]:
    """The headings of the columns, the rows, and what is left out; in ``width`` characters, 0 for no limit."""
    if table.lines:
        yield from table.lines
        return
    numbered = [table.columns, *(row.cells for row in table.rows)]
    widths = [max(map(len, column)) for column in zip(*numbered, strict=True)]
    room = max(width - sum(widths) - len(_GAP) * len(widths), _LEAST) if width else 0
    if table.form == "threads":
        names = _threads(table, room)
    else:
        names = [table.names[0], *(_name(row.name, row.origin, room) for row in table.rows)]
    everything = [(*cells, name) for cells, name in zip(numbered, names, strict=True)]
    for cells in everything:
        numbers = _GAP.join(f"{cell:>{width}}" for cell, width in zip(cells[:-1], widths, strict=False))
        yield f"{numbers}{_GAP}{cells[-1]}"
    if table.left_out:
        yield f"and {table.left_out}"


def _threads(table: Table, room: int) -> list[str]:
    """Two columns of text; ``room``: characters for both, 0 for no limit."""
    texts = [table.names, *((row.name, row.origin) for row in table.rows)]
    first = max(len(name) for name, _ in texts)
    if room:
        first = min(first, max(room // 2, _LEAST))
        rest = max(room - first - len(_GAP), _LEAST)
        texts = [(shortened(name, first), shortened(told, rest)) for name, told in texts]
    return [f"{name:{first}}{_GAP}{told}" for name, told in texts]


def _name(name: str, origin: str, room: int) -> str:
    """``room``: characters, 0 for no limit."""
    behind = f" [{origin}]" if origin else ""
    return f"{shortened(name, max(room - len(behind), _LEAST)) if room else name}{behind}"
