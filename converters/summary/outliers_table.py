"""The table of processes that are alike: each one's figures under the median of all, those that stand out marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.text import printable
from ..base.units import count
from ..facts import thresholds
from ..facts.ranks import who
from .outliers import Group
from .tables import table

if TYPE_CHECKING:
    from rich.table import Table

_MARK = "*"


def outliers_table(group: Group) -> Table:
    """A row with the median, then a row per process."""
    from rich.text import Text

    calls = {measure.call for measure in group.measures} - {""}
    what = f" (time and mean: of {', '.join(sorted(map(printable, calls)))})" if calls else ""
    # Two figures of one name are of all calls and of one.
    headers = (measure.name.capitalize() for measure in group.measures)
    noun = "Rank" if group.are_ranks else printable(group.program)
    made = table(*(f"{header} " for header in headers), last=f"{noun}{what}; {_MARK} stands out")
    marked = [measure.outliers for measure in group.measures]
    number = count(len(group.members))
    made.add_row(*(f"{measure.text(measure.median)} " for measure in group.measures), f"median of {number}")
    ranks = {member.pid: member.rank for member in group.members if member.rank is not None}
    for i in _shown(group):
        cells = [
            f"{measure.text(measure.values[i])}{_MARK if i in places else ' '}"
            for measure, places in zip(group.measures, marked, strict=True)
        ]
        member = group.members[i]
        style = "bold" if i in group.outliers else ""
        made.add_row(*cells, Text(printable(who(member.process, member.pid, ranks)), style=style))
    if rest := len(group.members) - made.row_count + 1:
        made.add_row(
            *[""] * len(group.measures),
            f"{count(rest)} {'more' if made.row_count > 1 else 'processes: none stands out'}",
        )
    if least := _waits_least(group):
        made.add_row(*[""] * len(group.measures), f"{least} waits least: the others may wait for it")
    return made


def _shown(group: Group) -> list[int]:
    """The places of the members that have a row."""
    if len(group.members) > thresholds.ALIKE_ROWS:
        return sorted(group.outliers)[: thresholds.OUTLIER_ROWS]
    return list(range(len(group.members))) if group.are_ranks or group.outliers else []


def _waits_least(group: Group) -> str:
    """The rank that stands out by waiting less than the others; "" if there is none, or calls were timed."""
    first = group.measures[0]
    if first.name != "blocked" or not group.are_ranks:
        return ""
    known = [(value, i) for i, value in enumerate(first.values) if value is not None]
    _, least = min(known, default=(0.0, -1))
    middle = first.median
    if least not in first.outliers or middle is None or (first.values[least] or 0.0) > middle:
        return ""
    return f"rank {group.members[least].rank}"
