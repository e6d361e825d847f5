"""Table of who blocks whom, and a matrix that fits into 80 columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..base.text import printable, shortened
from ..base.units import count, duration, plural, share
from ..facts import thresholds
from ..model.waits_for import PROCESS, THREAD
from .tables import table
from .waits_for import Blocking, KnotOf, Named

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_COLUMN = 9
"""Characters of a column's head."""


def blocking_blocks(
    of: Blocking, rows: int = thresholds.BLOCKING_ROWS, *, with_matrix: bool = True
) -> Iterator[RenderableType]:
    """Yields the table, the matrix if there are enough processes, and knots."""
    from rich.text import Text

    if not of.total:
        return
    yield blocking_table(of, rows)
    if with_matrix and sum(node.traced and node.waits > 0 for node in of.nodes) >= thresholds.MATRIX_FROM:
        yield Text("\nShares of all waiting: who waits (row), and with whom that ends (column)")
        yield matrix(of)
    for knot in of.knots[: thresholds.KNOTS_TOLD]:
        yield Text(knot_line(knot))


def blocking_table(of: Blocking, rows: int = thresholds.BLOCKING_ROWS) -> Table:
    """A row per process (or thread, if there is one process): how long it is blocked, and how long it blocks others; by
    whom, and whom, with shares of that time."""
    what = "process" if of.by == PROCESS else "thread"
    made = table("Blocked", "Blocks", last=f"Who blocks whom, by {what}")
    for i, node in enumerate(of.nodes[:rows]):
        text = printable(_name(node))
        if node.waits and (blockers := _listed(of, of.blocked_by(i), node.waits)):
            text += f"\nblocked by {blockers}"
        if node.blocks and (victims := _listed(of, of.blocks(i), node.blocks)):
            text += f"\nblocks {victims}"
        made.add_row(_time(node.waits), _time(node.blocks), text)
    if (hidden := len(of.nodes) - rows) > 0:
        made.add_row("", "", f"and {count(hidden)} more")
    return made


def matrix(of: Blocking) -> Table:
    """A row for each that waited, a column for each with whom waits end: shares of all waiting."""
    rows = [i for i, node in enumerate(of.nodes) if node.traced and node.waits][: thresholds.MATRIX_ROWS]
    columns = sorted(range(len(of.nodes)), key=lambda i: (-_ended(of, i), i))[: thresholds.MATRIX_COLUMNS]
    columns = sorted(i for i in columns if _ended(of, i))
    made = table(*(_head(of.nodes[i]) for i in columns), last="Who waits")
    for i in rows:
        cells = [share(of.ends[i, j], of.total) if (i, j) in of.ends else "-" for j in columns]
        made.add_row(*cells, printable(_name(of.nodes[i])))
    return made


def knot_line(knot: KnotOf) -> str:
    """``A knot: ping (tid 7) and pong (tid 8) wait for each other, 98.0 % of all waiting, and for nothing else``"""
    names = [printable(_name(node)) for node in knot.members]
    more = knot.number - len(names)
    listed = f"{', '.join(names)} and {plural(more, 'more thread')}" if more else _and(names)
    much = share(knot.time, round(knot.time / knot.share)) if knot.share else "0.0 %"
    return f"A knot: {listed} wait for each other, {much} of all waiting{', and for nothing else' * knot.closed}."


def _and(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def _ended(of: Blocking, index: int) -> int:
    return sum(time for (_, end), time in of.ends.items() if end == index)


def _head(node: Named) -> str:
    """The pid or tid: the row of the same one has its name. Interrupts have their names."""
    number = node.pid if node.kind == PROCESS else node.tid if node.kind == THREAD else 0
    return str(number) if number else shortened(printable(node.process), _COLUMN)


def _name(node: Named) -> str:
    """``python3 (pid 4711)``, ``worker (tid 4712)``, ``[timer]``; not safe to print."""
    if node.kind == PROCESS:
        return f"{node.process} (pid {node.pid})" if node.pid else node.process
    if node.kind == THREAD:
        return f"{node.thread or node.process} (tid {node.tid})" if node.tid else node.thread or node.process
    return node.process


def _listed(of: Blocking, times: list[tuple[int, int]], whole: int) -> str:
    telling = [(i, time) for i, time in times if time >= thresholds.ROW_PART * whole]
    names = [
        f"{printable(_name(of.nodes[i]))} {share(time, whole)}" for i, time in telling[: thresholds.BLOCKERS_NAMED]
    ]
    if len(telling) > thresholds.BLOCKERS_NAMED:
        names.append(f"{count(len(telling) - thresholds.BLOCKERS_NAMED)} more")
    return ", ".join(names)


def _time(ns: int) -> str:
    return duration(ns) if ns else "-"
