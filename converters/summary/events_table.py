"""The table of events that were counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..base.text import printable
from ..base.units import count, plural, share, share_scale
from ..facts import thresholds
from ..model.calls import CallTimes
from ..model.display import CallsView
from .calls import Calls
from .calls_view import Row, rows
from .events import Counted, per_second
from .tables import table

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


def events_table(events: Sequence[Counted], duration_ns: int, top: int, view: CallsView) -> Table:
    """Rows for the ``top`` most frequent, or as many as ``view`` says, by what it says; the others share one."""
    by_call = {id(each.of): each for each in events}
    found = rows([each.of for each in events], CallsView("calls", view.by, view.rows))
    number = view.rows or top
    shown, rest = found[:number], found[number:]
    parts = [row.call.count for row in shown] + ([sum(row.call.count for row in rest)] if rest else [])
    scale = share_scale(sum(parts))
    steps = scale.steps(parts)
    made = table("Count", "Ratio", "Per s", last="Event (Ratio: of all events)")
    names: list[Text | str] = [_name(row, by_call[id(row.of)]) for row in shown]
    names += [plural(len(rest), "more row")] if rest else []
    for part, step, name in zip(parts, steps, names, strict=True):
        rate = per_second(part, duration_ns) if duration_ns else "-"
        made.add_row(count(part), scale.text(step, part), rate, name)
    return made


def _name(row: Row, of: Counted) -> Text:
    """Event and file, where it came from most often, and who it was."""
    from rich.text import Text

    text = Text().append(printable(row.call.name), style="bold").append(f" {printable(row.call.where)}")
    if row.who:
        return text.append(f"  {printable(row.who)}")
    if of.callers and of.from_there:
        place = " → ".join(map(printable, of.callers))
        text.append(f"\n{share(of.from_there, of.number)} from {place}", style="dim")
    return text.append(f"\n{', '.join(_processes(of.of))}", style="dim")


def _processes(of: Calls) -> Iterator[str]:
    """Processes with the most events; several of one name together."""
    groups: dict[str, list[CallTimes]] = {}
    for each in of.each:
        if each.pid > 0:
            groups.setdefault(each.process, []).append(each)
    most = sorted(groups.values(), key=lambda group: -sum(each.count for each in group))[: thresholds.PROCESSES_NAMED]
    for group in most:
        name = printable(group[0].process)
        yield f"{count(len(group))} × {name}" if len(group) > 1 else f"{name} ({group[0].pid})"
    if (more := of.number - sum(map(len, most))) > 0:
        yield plural(more, "more process")
