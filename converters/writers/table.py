"""Tables for a terminal: plain text, numbers aligned, names last and never cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from ..model import Profile
from ..options import WriteOptions
from ..text import printable
from .table_rows import Table, summary, tables

_GAP = "  "


def write(profile: Profile, file: BinaryIO, options: WriteOptions) -> None:
    """Writes the tables that ``options`` asks for. Raises StallscopeError when they do not fit the profile."""
    title = printable(options.title or profile.title)
    head = [*([title] if title else []), *summary(profile, options)]
    file.write("".join(f"{line}\n" for line in head).encode())
    for table in tables(profile, options):
        file.write(f"\n{table.heading}\n".encode())
        file.writelines(f"{line}\n".encode() for line in lines(table))


def lines(table: Table) -> Iterator[str]:
    """The headings of the columns, the rows, and what is left out."""
    everything = [(*table.columns, "function"), *((*row.cells, _name(row.name, row.origin)) for row in table.rows)]
    widths = [max(map(len, column)) for column in zip(*everything, strict=True)]
    for cells in everything:
        numbers = _GAP.join(f"{cell:>{width}}" for cell, width in zip(cells[:-1], widths, strict=False))
        yield f"{numbers}{_GAP}{cells[-1]}"
    if table.left_out:
        yield f"and {table.left_out}"


def _name(name: str, origin: str) -> str:
    return f"{name} [{origin}]" if origin else name
