"""The table of calls, with the columns of frameworks' profilers, and the distribution of latencies as bcc prints it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..base.text import printable
from ..base.units import Scale, count, duration, plural, share, share_scale, time_scale
from ..facts import thresholds
from ..facts.identity import is_sum, shown_id
from ..facts.ranks import who
from ..model.calls import CallTimes, octaves
from ..model.display import USUAL, CallsView
from .call_ioctls import lines
from .calls import Calls
from .calls_view import Row, rows
from .tables import table

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

_WIDE = 150
"""Width from which on a call and its figures are one row; below, each call has a line of its own for them."""
_STARS = 40
"""Width of the longest bar, as in bcc."""
_USEC = 1_000
_GAP = "  "


def calls_table(calls: Sequence[Calls], width: int, top: int, view: CallsView = USUAL) -> RenderableType:
    """Rows for the first ``top`` calls, or as many as ``view`` says; the others share one."""
    found, wide = rows(calls, view), width >= _WIDE
    shown = found[: view.rows or top]
    columns = _Columns(found, len(shown), wide=wide)
    names = [_call(row, wide=wide, places=view.places) for row in shown]
    if len(shown) < len(found):
        from rich.text import Text

        names.append(Text(plural(len(found) - len(shown), "more row" if view.by != "function" else "more call")))
    if not wide:
        return _stacked(columns, names)
    made = table(*columns.headers, last="Call (Ratio: of the time in all calls)")
    for cells, name in zip(columns.cells, names, strict=True):
        made.add_row(*cells, name)
    return made


class _Columns:
    """The figures of the first ``number`` rows, and of the others together."""

    def __init__(self, found: Sequence[Row], number: int, *, wide: bool) -> None:
        calls = [row.call for row in found]
        self._nested, self._failing = any(call.inner for call in calls), any(call.errors for call in calls)
        self._wide = wide
        shown, rest = calls[:number], calls[number:]
        own = [call.whole_own for call in shown] + ([sum(call.whole_own for call in rest)] if rest else [])
        whole = sum(own)
        self._scale = time_scale(max([whole, *(call.whole for call in calls)]))
        times, shares = _column(own, self._scale), _column(own, share_scale(whole)) if whole else ["-"] * len(own)
        self.headers = self._chosen("Calls", "Total", "Self", "Ratio", "Min", "Max", "Ave", *_MORE)
        self.cells = [self._cells(call, times[i], shares[i]) for i, call in enumerate(shown)]
        if rest:
            figures = count(sum(call.count for call in rest)), "" if self._nested else times[-1], times[-1], shares[-1]
            self.cells.append(self._chosen(*figures, "", "", "", *[""] * len(_MORE)))

    def _cells(self, call: CallTimes, own: str, ratio: str) -> list[str]:
        latencies = [duration(each) if call.count else "-" for each in (call.min, call.max, call.mean)]
        parts = [share(part, call.total) if call.total else "-" for part in split(call)]
        quantiles = quantile(call, 0.5), quantile(call, 0.99)
        whole = _column([call.whole], self._scale)[0] if self._nested else own
        failed = count(sum(call.errors.values()))
        return self._chosen(count(call.count), whole, own, ratio, *latencies, *quantiles, *parts, failed)

    def _chosen(self, *cells: str) -> list[str]:
        """Cells that this table has: without calls inside each other, *Self* would be *Total*."""
        calls, total, own, ratio, least, most, mean, p50, p99, cpu, blocked, queued, errors = cells
        found = [calls, total, *([own] if self._nested else []), ratio, least, most, mean]
        if not self._wide:
            return [*found, p99]
        return [*found, p50, p99, cpu, blocked, queued, *([errors] if self._failing else [])]


_MORE = "p50", "p99", "CPU", "Blocked", "Queued", "Errors"


def _column(parts: Sequence[int], scale: Scale) -> list[str]:
    """Cells that add up."""
    return [scale.text(*cell) for cell in zip(scale.steps(list(parts)), parts, strict=True)]


def split(call: CallTimes) -> tuple[int, int, int]:
    """The parts of its time: on a core, blocked, waiting for a core."""
    return call.on_cpu, call.blocked, call.runnable


def quantile(call: CallTimes, part: float) -> str:
    """Quantile as text; "-" when not known."""
    found = call.quantile(part)
    return "-" if found is None else duration(found)


def _stacked(columns: _Columns, names: Sequence[Text]) -> RenderableType:
    """Table for narrow terminals: the call, below it a line of figures, and below that the first line's details."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    lines = [columns.headers, *columns.cells]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    head, *figures = (
        _GAP.join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)) for cells in lines
    )
    parts: list[RenderableType] = [Text(head, style="dim")]
    for name, line in zip(names, figures, strict=True):
        first, *details = name.split("\n")
        parts += [first, Text(line), *(Padding(detail, (0, 0, 0, len(_GAP))) for detail in details)]
    return Group(*parts)


def _call(row: Row, *, wide: bool, places: bool) -> Text:
    """Name, device and who called it, and under it what has no column, the errors and the processes."""
    from rich.text import Text

    call = row.call
    text = Text().append(printable(call.name), style="not dim bold")
    text.append(f" {printable(call.where)}", style="not dim not bold")
    if row.who:
        text.append(f"  {printable(row.who)}", style="not dim not bold")
    elif row.of.blocked_in:
        text.append(f" │ {printable(row.of.blocked_in)}", style="not dim not bold cyan")
    for callers, number in row.of.places if places and not row.who else ():
        told = f"{count(number)} of {count(call.count)} from {' → '.join(map(printable, callers))}"
        text.append(f"\n{told}", style="not bold dim")
    details = _details(row, wide=wide)
    for line in (["; ".join(details)] if details else []) + ([] if row.who else lines(row.of.ioctls)):
        text.append(f"\n{line}", style="not bold dim")
    return text


def _details(row: Row, *, wide: bool) -> list[str]:
    call, details = row.call, []
    if not wide and call.count:
        cpu, blocked, queued = (share(part, call.total) if call.total else "-" for part in split(call))
        details.append(f"p50 {quantile(call, 0.5)}; {cpu} on a core, {blocked} blocked, {queued} queued")
    if call.locks:
        details.append(f"takes {printable(call.locks)}")
    if call.open_count:
        details.append(f"{count(call.open_count)} not ended: {duration(call.open_time)}")
    details += [f"{count(number)} {printable(error)}" for error, number in _most_first(call.errors)]
    return details if row.who else [*details, _processes(row.of)]


def _processes(of: Calls) -> str:
    """Processes with most time in it, by name: ``train (4711, 4712, 4713), 5 more processes``, or ``rank 3 (pid
    4711)``."""
    own = [call for call in of.each if not is_sum(call.pid)]
    ids: dict[str, list[str]] = {}
    shown = own[: thresholds.PROCESSES_NAMED]
    for call in shown:
        if call.pid not in of.ranks:
            ids.setdefault(call.process, []).append(shown_id(call.pid))
    names = [who(call.process, call.pid, of.ranks) for call in shown if call.pid in of.ranks]
    names += [f"{printable(name)} ({', '.join(found)})" for name, found in ids.items()]
    if (rest := of.number - len(own[: thresholds.PROCESSES_NAMED])) > 0:
        names.append(f"{'up to ' if len(own) < len(of.each) else ''}{plural(rest, 'more process')}")
    return ", ".join(names)


def _most_first(errors: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(errors.items(), key=lambda item: (-item[1], item[0]))


def histogram(of: Calls) -> RenderableType:
    """Latencies by powers of two, in microseconds, or in nanoseconds where one is shorter."""
    from rich.console import Group
    from rich.text import Text

    rows = list(octaves(of.total.latencies))
    in_ns = bool(rows) and rows[0][0] < 2 * _USEC
    made = table("nsecs" if in_ns else "usecs", "count", last="distribution")
    most = max((calls for _, _, calls in rows), default=0)
    for begin, end, calls in rows:
        bounds = (begin, end - 1) if in_ns else (begin // _USEC, end // _USEC - 1)
        stars = "*" * (calls * _STARS // most)
        made.add_row(f"{bounds[0]} -> {bounds[1]}", count(calls), f"|{stars:<{_STARS}}|")
    return Group(Text(f"{printable(of.total.name)} {printable(of.total.where)}", style="bold"), made)
