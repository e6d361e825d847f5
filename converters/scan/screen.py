"""The report of a scan for a person: an answer, a table of processes, findings, and what to run next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from ..base.text import printable
from ..base.units import count, duration, plural, share
from ..facts import thresholds
from ..facts.identity import shown_id
from ..facts.sampling import shown_share
from ..phrases.next_steps import tells
from ..rules.verdict import IDLE
from ..summary.render import lost_line
from ..summary.tables import table
from ..summary.terminal import ENDLESS, encodable, has_color, printed, size_of
from . import between, contended, jobs
from .cost import cost_lines
from .hot import Hot
from .over_time import OverTime, legend
from .process_verdicts import Ender, ProcessVerdict, idle_names
from .report import Report
from .scanned import scanned
from .step_lines import pace_lines

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

LINES = 40
"""Lines of a screen, unless the terminal has fewer."""


def show(report: Report, file: TextIO) -> None:
    """Writes the report to ``file``: on a terminal as much of the table as fits into `LINES` or its height."""
    terminal = file.isatty()
    width, height = size_of(file) if terminal else (ENDLESS, 0)
    room = min(height or LINES, LINES)
    text = ""
    for rows in range(thresholds.SCAN_ROWS, 0, -1):
        text = printed(_blocks(report, rows), width, has_color(file))
        if not terminal or text.count("\n") < room:
            break
    file.write(encodable(text, file.encoding))
    file.flush()


def _blocks(report: Report, rows: int) -> Iterator[RenderableType]:
    from rich.text import Text

    summary = report.summary
    for sentence in summary.answer:
        yield Text(printable(sentence), style="bold")
    yield from (Text(), _host_line(report))
    yield from jobs.blocks(report.jobs)
    held = [each for each in report.processes if each.kind != IDLE]
    at_work = {pid for each in held for pid in each.pids}
    yield from (Text(printable(each)) for each in pace_lines(report.steps, at_work))
    yield from (Text(printable(each)) for each in report.gpus.lines())
    if held:
        yield from (Text(), _table(held[:rows], summary.duration_ns))
        if strips := changing(held[:rows]):
            length = duration(strips[0].series.length)
            yield Text(f"Over time, a letter for each {length}: {legend(strips)}", style="dim")
    if len(held) > rows:
        yield Text(f"and {plural(sum(len(each.pids) for each in held[rows:]), 'process')} more (--json has them)")
    if line := _idle_line(idle_names(report.processes)):
        yield Text(line, style="dim")
    yield from _between(report, held[:rows])
    if findings := (*report.findings, *contended.lines(report.host.contended, summary.duration_ns)):
        yield from (Text(), *(Text(f"• {printable(each)}") for each in findings))
    yield from (Text(), lost_line(summary, in_short=True))
    yield from (Text(printable(each), style="dim") for each in cost_lines(summary.comments))
    if step := summary.next_step:
        command, shows = printable(step.command), printable(tells(step))
        yield Text("Next: ").append(command, style="bold").append(f"  # {shows}", style="dim")


def _between(report: Report, rows: Sequence[ProcessVerdict]) -> Iterator[RenderableType]:
    """Yields the table of who waits for whom across processes, if the rows do not tell all of it."""
    from rich.text import Text

    blocking = report.summary.blocking
    waiting = blocking.total if blocking else 0
    pairs = between.told(between.between(blocking), waiting, report.summary.duration_ns)
    ended = [(each.pids, each.ender.pids) for each in rows if each.ender]
    if not all(any(between.is_told(pair, *pids) for pids in ended) for pair in pairs):
        yield from (Text(), between.between_table(pairs, waiting))


def _host_line(report: Report) -> Text:
    from rich.text import Text

    summary = report.summary
    where = f" on {printable(summary.host)}" if summary.host else ""
    cores = frozenset().union(*(each.cpus for each in summary.contention))
    used = ""
    if cores and summary.duration_ns:
        wanted = sum(each.on_cpu + each.runnable for each in summary.contention) / summary.duration_ns
        on_cpu = sum(each.on_cpu for each in summary.contention) / summary.duration_ns
        used = f": {on_cpu:.2f} of {plural(len(cores), 'core')} used, {wanted:.2f} wanted"
    about = f"; the first sentence is about {count(report.concerned)} of them" if report.concerned else ""
    return Text(f"Scanned {scanned(report)} for {duration(summary.duration_ns)}{where}{used}{about}")


def _table(rows: Sequence[ProcessVerdict], trace: int) -> Table:
    """One row for processes of one name that do the same."""
    strips = changing(rows)
    heads = ("Verdict", "Share", "Cores", *(("Over time",) if strips else ()))
    made = table(*heads, last="Processes (Share: of the time of the threads that it is on)")
    made.columns[0].justify = "left"
    if strips:
        made.columns[heads.index("Over time")].justify = "left"
    for each in rows:
        much = share(each.time, each.wall) if each.wall else "-"
        strip = (each.over.strip if each.over else "-",) if strips else ()
        made.add_row(each.kind, much, f"{each.on_cpu / trace:.2f}" if trace else "-", *strip, _processes(each))
    return made


def changing(rows: Sequence[ProcessVerdict]) -> list[OverTime]:
    """The slices of these rows, if something changes in one of them; else none."""
    found = [each.over for each in rows if each.over]
    return found if any(each.changes for each in found) else []


def _processes(each: ProcessVerdict) -> Text:
    from rich.text import Text

    number = f"{count(len(each.pids))} × " if len(each.pids) > 1 else ""
    text = Text(f"{number}{printable(each.name)}", style="bold")
    text.append(_pids(each.pids), style="not bold")
    where = _hot(each.hot) or " → ".join(map(printable, each.frames))
    where += f" │ {printable(each.kernel)}" if each.kernel else ""
    if where:
        text.append(f"\n{where}", style="not bold")
    if each.over and each.over.told:
        text.append(f"\n{printable(each.over.told)}", style="not bold")
    if each.ender:
        text.append(
            f"\nends with {_ender(each.ender)}: {share(each.ender.time, each.waits)} of the waits", style="not bold"
        )
    if each.network:
        text.append(f"\n{printable(each.network)}", style="not bold")
    return text


def _hot(hot: Hot) -> str:
    """``runs in train → matmul: 62.0 %, train → save: 20.0 %``; "" if too few samples tell."""
    told = [f"{' → '.join(map(printable, frames))}: {_part(number, hot)}" for frames, number in hot.told]
    return f"runs in {', '.join(told)}" if told else ""


def _part(number: int, hot: Hot) -> str:
    return shown_share(number, number, hot.samples)


def _ender(ender: Ender) -> str:
    number = f"{count(len(ender.pids))} × " if len(ender.pids) > 1 else ""
    return f"{number}{printable(ender.name)}{_pids(ender.pids)}"


def _pids(pids: Sequence[int]) -> str:
    """`` (pid 12, 13)``; "" for more than are told."""
    if not 0 < len(pids) <= thresholds.PIDS_SHOWN:
        return ""
    return f" (pid {', '.join(map(shown_id, pids))})"


def _idle_line(names: Sequence[tuple[str, int]]) -> str:
    """``Idle: 25 × bash, 3 × sshd, and 12 others``"""
    if not names:
        return ""
    told = [f"{count(number)} × {printable(name)}" if number > 1 else printable(name) for name, number in names]
    hidden = sum(number for _, number in names[thresholds.IDLE_NAMED :])
    others = f", and {count(hidden)} others" if hidden else ""
    return f"Idle: {', '.join(told[: thresholds.IDLE_NAMED])}{others}"
