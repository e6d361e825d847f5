"""The table of `Contention`: a row per process name, with numbers of threads and the use of cores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.text import printable
from ..base.units import count, duration, plural, share
from ..facts import thresholds
from ..facts.contention import Contention, together
from ..facts.groups import by_name
from ..model.processes import latency_bound

if TYPE_CHECKING:
    from rich.table import Table


def rows(processes: tuple[Contention, ...]) -> list[Contention]:
    """The rows shown; the last may combine several names; empty if there is nothing to report."""
    telling = [group for group in by_name(processes) if _tells(group)]
    telling.sort(key=lambda group: -group.on_cpu - group.runnable)
    rest = telling[thresholds.CONTENTION_ROWS :]
    return telling[: thresholds.CONTENTION_ROWS] + ([together(rest, plural(len(rest), "more name"))] if rest else [])


def _tells(group: Contention) -> bool:
    return group.created > 0 or group.on_cpu + group.runnable >= thresholds.CONTENTION_ROW * max(group.duration, 1)


def contention_table(groups: list[Contention], table: Table, *, wide: bool) -> None:
    """Fills ``table``, whose columns are those of `headers`."""
    from rich.text import Text

    for group in groups:
        name = f"{count(group.processes)} × {group.process}" if group.processes > 1 else group.process
        text = Text(printable(name), style="bold" if group.process else "")
        churn = [_rate(group, group.created), _rate(group, group.ended), _switches(group)]
        waits = [_mean(group), _p99(group)]
        cores = [share(group.runnable, group.wall), _number(group.used), _number(group.allowed)]
        if wide:
            table.add_row(count(group.threads), *churn, *waits, *cores, text)
        else:
            told = plural(group.threads, "thread")
            told += f" ({churn[0]} created, {churn[1]} ended a second)" if group.created + group.ended else ""
            told += f", waits for a core: mean {waits[0]}, p99 {waits[1]}"
            table.add_row(*cores, text.append(f"\n{told}", style="not bold dim"))


def headers(*, wide: bool) -> tuple[str, ...]:
    """Headings of all columns except the last, the process."""
    cores = ("Runnable", "Cores: used", "allowed")
    return ("Threads", "New/s", "Ended/s", "Switches/s", "Queued: mean", "p99", *cores) if wide else cores


def _rate(group: Contention, number: int) -> str:
    rate = group.per_second(number)
    if rate is None:
        return "-"
    return f"{rate:,.0f}" if rate >= 10 or rate == 0 else f"{rate:.1f}" if rate >= 0.05 else "<0.1"


def _switches(group: Contention) -> str:
    """Rate of switches between who runs and waits; "-" if nobody counts that (eu-stack)."""
    return _rate(group, group.switches) if group.switches or not group.runnable else "-"


def _mean(group: Contention) -> str:
    return "-" if group.mean_latency is None else duration(group.mean_latency)


def _p99(group: Contention) -> str:
    """Bound of the bucket, which is all that is known."""
    bucket = group.p99_bucket
    if bucket is None:
        return "-"
    bound = latency_bound(bucket)
    return f"> {duration(latency_bound(bucket - 1) or 0)}" if bound is None else f"≤ {duration(bound)}"


def _number(cores: float | None) -> str:
    return "-" if cores is None else f"{cores:.2f}"
