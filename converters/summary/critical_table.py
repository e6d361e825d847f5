"""The table of a critical path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.text import printable
from ..base.units import count, duration, plural, share
from ..facts import thresholds
from .critical import Critical, with_alike
from .tables import table

if TYPE_CHECKING:
    from rich.table import Table


def critical_table(critical: Critical, most: int = thresholds.PATH_ROWS) -> Table:
    """A row for each of the largest parts, threads of one kind together, and one for the rest."""
    title = f"Critical path of {printable(critical.thread)}: {duration(critical.wall)}"
    made = table("Time", "Share", "Segments", last=title)
    parts = with_alike(critical)
    for part in parts[:most]:
        where = f" in {' → '.join(map(printable, part.frames))}" if part.frames else ""
        what = f"{printable(part.thread)}: {printable(part.state)}{where}"
        made.add_row(duration(part.time), share(part.time, critical.wall), count(part.segments), what)
    if rest := parts[most:]:
        time, segments = sum(part.time for part in rest), sum(part.segments for part in rest)
        made.add_row(duration(time), share(time, critical.wall), count(segments), plural(len(rest), "more part"))
    return made
