"""Tables in Markdown (as in GitHub's specification of tables), for issues and merge requests.

Functions are a table. Calls are a code block, because tables have no indentation. A name is code, in which only the
back quote and, in a table, the bar need care; titles and notes are text with every special character escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from ...base.text import printable
from ...model import Profile
from ..base.options import WriteOptions
from . import plain
from .rows import Table, summary, tables

_MARKS = re.compile(r"[\\`*_{}\[\]<>#|~&!@$^]|:(?=//)|(?<=www)\.", re.IGNORECASE)
"""Characters with a meaning inside a line, including links without brackets. A backslash may precede any of them."""


def write(profile: Profile, file: BinaryIO, options: WriteOptions) -> None:
    """Writes the tables that ``options`` asks for. Raises StallscopeError when they do not fit the profile."""
    wanted = list(tables(profile, options))
    file.writelines(f"{line}\n".encode() for line in _document(profile, options, wanted))


def _document(profile: Profile, options: WriteOptions, wanted: Sequence[Table]) -> Iterator[str]:
    yield f"# {_text(printable(options.title or profile.title or 'Profile'))}"
    yield ""
    yield from (f"- {_text(line)}" for line in summary(profile, options))
    for table in wanted:
        yield ""
        yield f"## {_text(table.heading)}"
        yield ""
        yield from _table(table) if table.form in ("functions", "threads") else _block(table)


def _table(table: Table) -> Iterator[str]:
    rows = [(*(column or "share" for column in table.columns), *table.names)]
    rows += [(*row.cells, _code(row.name), _text(row.origin)) for row in table.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    numbers = len(table.columns)
    widths[numbers:] = [0, 0]  # names may have any length and width: they are not aligned
    rule = [f"{'-' * (width + 1)}:" for width in widths[:numbers]] + ["---", "---"]
    for i, row in enumerate(rows):
        aligned = [f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)]
        yield f"| {' | '.join(aligned)} |"
        if i == 0:
            yield f"|{'|'.join(rule)}|"
    if table.left_out:
        yield ""
        yield f"and {_text(table.left_out)}"


def _block(table: Table) -> Iterator[str]:
    """A code block. No line begins with a back quote: each begins with a number."""
    yield "```text"
    yield from plain.lines(table)
    yield "```"


def _text(text: str) -> str:
    return _MARKS.sub(r"\\\g<0>", text)


def _code(name: str) -> str:
    """Code in a cell, enclosed in more back quotes than occur in a row in it."""
    fence = "`" * (max(map(len, re.findall("`+", name)), default=0) + 1)
    # One space is removed from both ends, unless there is nothing else (CommonMark, 6.1).
    room = " " if name.strip(" ") and (name[0] in "` " or name[-1] in "` ") else ""
    return f"{fence}{room}{_cell(name)}{room}{fence}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
