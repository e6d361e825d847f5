"""The table of calls, and the distribution of their latencies as bcc's tools print it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..base.text import printable
from ..base.units import count, duration, plural, share, share_scale, time_scale
from ..model.calls import CallTimes, octaves
from .call_ioctls import lines
from .calls import Calls
from .tables import WIDE, table

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

_PROCESSES = 3
"""How many processes are named in a row."""
_STARS = 40
"""Width of the longest bar, as in bcc."""
_USEC = 1_000


def calls_table(calls: Sequence[Calls], width: int, top: int) -> RenderableType:
    """Rows for the ``top`` calls; the others share one."""
    wide = width >= WIDE
    more = ("Count", "Errors", "Mean", "p50", "p99", "Max", "On core", "Blocked", "Queued")
    made = table("Time", "Share", *(more if wide else ()), last="Call (Share: of the time in all calls)")
    shown, rest = calls[:top], calls[top:]
    parts = [_time(each) for each in shown] + ([sum(map(_time, rest))] if rest else [])
    whole = sum(parts)
    times = _column(parts, whole, in_time=True)
    shares = _column(parts, whole, in_time=False)
    for i, each in enumerate(shown):
        made.add_row(times[i], shares[i], *(_figures(each.total) if wide else ()), _call(each, with_figures=not wide))
    if rest:
        number = (count(sum(each.total.count for each in rest)), *[""] * (len(more) - 1)) if wide else ()
        made.add_row(times[-1], shares[-1], *number, plural(len(rest), "more call"))
    return made


def _time(of: Calls) -> int:
    return of.time


def _column(parts: Sequence[int], whole: int, *, in_time: bool) -> list[str]:
    """Cells that add up."""
    if not whole:
        return ["-"] * len(parts)
    scale = time_scale(whole) if in_time else share_scale(whole)
    return [scale.text(*cell) for cell in zip(scale.steps(list(parts)), parts, strict=True)]


def _figures(total: CallTimes) -> tuple[str, ...]:
    failed = sum(total.errors.values())
    parts = [share(part, total.total) if total.total else "-" for part in _split(total)]
    mean, most = (duration(total.mean), duration(total.max)) if total.count else ("-", "-")
    return count(total.count), count(failed), mean, _quantile(total, 0.5), _quantile(total, 0.99), most, *parts


def _split(total: CallTimes) -> tuple[int, int, int]:
    return total.on_cpu, total.blocked, total.runnable


def _quantile(total: CallTimes, part: float) -> str:
    found = total.quantile(part)
    return "-" if found is None else duration(found)


def _call(of: Calls, *, with_figures: bool) -> Text:
    """Name and device, and under it the figures, if they have no columns, the wait, the errors and the processes."""
    from rich.text import Text

    total = of.total
    text = Text(printable(total.name), style="bold").append(f" {printable(total.where)}", style="not bold")
    text.append(f" │ {printable(of.blocked_in)}" if of.blocked_in else "", style="not bold cyan")
    details = []
    if with_figures and total.count:
        details.append(f"{count(total.count)} × {duration(total.mean)}, p99 {_quantile(total, 0.99)}")
        details[0] += f", max {duration(total.max)}"
        on_core, blocked, queued = (share(part, total.total) if total.total else "-" for part in _split(total))
        details.append(f"{on_core} on a core, {blocked} blocked, {queued} queued")
    if total.inner:
        details.append(f"{duration(total.total)} with the calls that it makes")
    if total.locks:
        details.append(f"takes {printable(total.locks)}")
    if total.open_count:
        details.append(f"{count(total.open_count)} not ended: {duration(total.open_time)}")
    details += [f"{count(number)} {printable(error)}" for error, number in _most_first(total.errors)]
    names = [f"{printable(call.process)} ({call.pid})" for call in of.each[:_PROCESSES]]
    names += [f"{plural(len(of.each) - _PROCESSES, 'more process')}"] if len(of.each) > _PROCESSES else []
    text.append("\n" + "; ".join([*details, ", ".join(names)]), style="not bold dim")
    for line in lines(of.ioctls):
        text.append(f"\n{line}", style="not bold dim")
    return text


def _most_first(errors: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(errors.items(), key=lambda item: (-item[1], item[0]))


def histogram(of: Calls) -> Table:
    """Latencies by powers of two, in microseconds, or in nanoseconds where one is shorter."""
    rows = list(octaves(of.total.latencies))
    in_ns = bool(rows) and rows[0][0] < 2 * _USEC
    title = f"{printable(of.total.name)} {printable(of.total.where)}: {'nsecs' if in_ns else 'usecs'}"
    made = table(title, "count", last="distribution")
    most = max((calls for _, _, calls in rows), default=0)
    for begin, end, calls in rows:
        bounds = (begin, end - 1) if in_ns else (begin // _USEC, end // _USEC - 1)
        stars = "*" * (calls * _STARS // most)
        made.add_row(f"{bounds[0]} -> {bounds[1]}", count(calls), f"|{stars:<{_STARS}}|")
    return made
