"""The matrix of a call: who was inside, and about to return next, while whom waited."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.text import printable
from ..base.units import duration, share
from .sharing import Shared
from .tables import table

if TYPE_CHECKING:
    from rich.table import Table

_MOST = 8
"""So many processes have a row, and so many a column."""


def matrix(of: Shared) -> Table:
    """A row per process that waited, a column per process that was inside; shares of all waiting."""
    call = of.call
    held, waited = call.held(), dict[int, int]()
    for (waiter, _), ns in call.waits.items():
        waited[waiter] = waited.get(waiter, 0) + ns
    columns, rows = (sorted(sorted(each, key=lambda pid: -each[pid])[:_MOST]) for each in (held, waited))
    whole = sum(held.values())
    title = f"Waits in {printable(call.name)} {printable(call.device)}, while this process was the next to return"
    made = table("Waited", *map(str, columns), last=title)
    for pid in rows:
        cells = [share(call.waits[pid, each], whole) if (pid, each) in call.waits else "-" for each in columns]
        made.add_row(duration(waited[pid]), *cells, printable(of.who(pid)))
    factor = f"{of.factor:.1f} times as long" if of.factor else "never alone"
    told = f"{call.mean_inside:.1f} inside on average, two or more for {share(call.shared, call.busy)} of its time"
    made.add_row("", *[""] * len(columns), f"{told}; {factor}")
    return made
