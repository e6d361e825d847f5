"""The summary of a profile for a person: sentences and tables, for a terminal of any width, a pipe or a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

from ..base.text import printable
from ..base.units import count, counted, duration, plural, share_scale
from ..facts import thresholds
from ..facts.contention import Contention
from ..facts.identity import shown_id
from ..model.losses import NAMELESS, divided, time_of
from ..model.remarks import FramesNameless, Joined, Shed, TraceCost
from ..phrases.next_steps import tells
from ..phrases.remarks import worded
from . import contention_table, outside_ioctls
from .asked_values_table import answer_blocks
from .call_time_table import times_table
from .calls_table import calls_table, histogram
from .copies_table import copies_table
from .critical_table import critical_table
from .events_table import events_table
from .figures import Process, Summary
from .fitting import (
    FEW,
    LINES,
    MORE_LINES,
    TOP,
    Parts,
    for_few,
    for_many,
    growth,
    in_any,
    in_height,
    left_out,
    shows_running,
)
from .locks_table import locks_table, shown_locks
from .outliers_table import outliers_table
from .sharing_table import matrix
from .tables import WIDE, off_cpu_steps, running_table, table, waits_table
from .terminal import ENDLESS, encodable, has_color, printed, size_of
from .waits_for_table import blocking_blocks

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text


_SHOWN = (Joined, Shed, TraceCost)
"""Remarks that a report of few lines shows elsewhere."""


def render(
    summary: Summary, file: TextIO, *, width: int | None = None, color: bool | None = None, top: int | None = None
) -> None:
    """Writes the summary to ``file``.

    ``width`` in columns: None is the terminal's, and no limit where ``file`` is not a terminal. ``color``:
    None means on a terminal, unless NO_COLOR is set or the terminal is dumb. ``top``: how many waits are shown; None
    is `TOP`, and where the width is limited as many as fit into the terminal's height; without a terminal, that is
    `LINES`, or `MORE_LINES` for many processes; other tables get shorter, too. Names are made safe to print and
    wrapped, never cut. What ``file`` cannot encode is written in ASCII.
    """
    if color is None:
        color = has_color(file)
    columns, lines = size_of(file) if file.isatty() else (ENDLESS, 0)
    columns = width or columns
    if top is not None or columns >= ENDLESS or not _pids(summary):
        text = _rendered(summary, columns, color, Parts(TOP if top is None else top))
    else:
        text = _fitted(summary, columns, lines, color)
    file.write(encodable(text, file.encoding))


def render_interval(summary: Summary, file: TextIO) -> None:
    """Writes when an interval of a trace began, the table of its calls or events, and what is missing. Width and colour
    as in `render`."""
    from rich.text import Text

    width = size_of(file)[0] if file.isatty() else ENDLESS
    when = time.strftime("%H:%M:%S", time.localtime(summary.start_ns / 1e9))
    head = Text(f"{when}, {duration(summary.duration_ns)}", style="bold")
    blocks: list[RenderableType]
    if summary.events:
        blocks = [head, events_table(summary.events, summary.duration_ns, TOP, summary.view)]
    elif summary.calls:
        blocks = [head, calls_table(summary.calls, width, TOP, summary.view)]
    else:
        blocks = [head.append(": nothing was seen", style="not bold")]
    if divided(summary.lost)[0]:
        blocks.append(lost_line(summary))
    file.write(encodable(printed([*blocks, Text()], width, has_color(file)), file.encoding))


def _fitted(summary: Summary, width: int, height: int, color: bool) -> str:
    """Text with as much as fits; at last the least. ``height`` is 0 if it is not known."""
    text = ""
    for parts, room in _parts_that_may_fit(summary, height):
        text = _rendered(summary, width, color, parts)
        if text.count("\n") < room:
            return _grown(text, parts, room, lambda more: _rendered(summary, width, color, more))
    return text


def _grown(text: str, parts: Parts, room: int, rendered: Callable[[Parts], str]) -> str:
    """``text``, or a longer one that fits, too: what is left of a screen is used."""
    for step in growth() if parts.tables else ():
        while (more := step(parts)) != parts and (longer := rendered(more)).count("\n") < room:
            text, parts = longer, more
    return text


def _parts_that_may_fit(summary: Summary, height: int) -> list[tuple[Parts, int]]:
    """Each with the number of lines that it may have."""
    number, calls = len(_pids(summary)), bool(summary.calls or summary.events or summary.steps or summary.collectives)
    few: list[Parts] = []
    if number <= (1 if calls else FEW):
        few = for_few(several=number > 1, blocking=bool(summary.blocking), calls=calls)
    many = [] if few and not calls else for_many()
    if height:
        return in_height(height, [*few, *many])
    return [*in_any(few, LINES), *in_any(many, MORE_LINES)]


def _rendered(summary: Summary, width: int, color: bool, parts: Parts) -> str:
    return printed(_blocks(summary, width, parts), width, color)


def _pids(summary: Summary) -> list[int]:
    return [pid for process in summary.processes for pid in process.pids]


def _blocks(summary: Summary, width: int, parts: Parts) -> list[RenderableType]:
    from rich.text import Text

    sentences = (*summary.answer, *summary.untold)
    blocks: list[RenderableType] = [Text(printable(sentence), style="bold") for sentence in sentences]
    blocks += [Text(), _who_line(summary, parts.names)]
    if summary.times.wall:
        blocks.append(_times_line(summary))
    if not parts.tables:
        return [*blocks, *_last_lines(summary, width, parts)]
    if shows_running(summary, parts):
        number = min(max(parts.top - 1, 1), parts.work) if summary.waits else parts.top
        blocks += [Text(), running_table(summary, width, number)]
    if summary.waits:
        blocks += [Text(), waits_table(summary, width, parts.top)]
        blocks += _open_line(summary) if parts.notes else []
    if summary.blocking and parts.blocking and summary.blocking.total:
        blocks += [Text(), *blocking_blocks(summary.blocking, parts.blocking, with_matrix=parts.matrix)]
    blocks += _calls_blocks(summary, width, parts)
    blocks += [block for each in _collectives_tables(summary, parts) for block in (Text(), each)]
    blocks += [block for each in _steps_tables(summary, parts) for block in (Text(), each)]
    if parts.notes and shown_locks(summary.locks, summary.times.wall):
        blocks += [Text(), locks_table(summary.locks, summary.times.wall, parts.locks)]
    if summary.critical and parts.path:
        blocks += [Text(), critical_table(summary.critical, parts.path)]
    if parts.processes and _with_processes(summary, width) and (shown := contention_table.rows(summary.contention)):
        blocks += [Text(), _contention_table(shown, width >= WIDE)]
    return [*blocks, *_last_lines(summary, width, parts)]


def _with_processes(summary: Summary, width: int) -> bool:
    return len(_pids(summary)) > 1 or width >= WIDE


def _last_lines(summary: Summary, width: int, parts: Parts) -> list[RenderableType]:
    """Lines on what is missing, and on what would show more."""
    from rich.text import Text

    lines: list[RenderableType] = [Text(), lost_line(summary, in_short=not parts.notes)]
    if parts.notes:
        lines += [Text(f"Note: {printable(text)}") for text in worded(summary.comments)]
    if missing := left_out(summary, parts, with_processes=_with_processes(summary, width)):
        lines.append(Text(f"Shortened: no room for {', '.join(missing)}; -v prints all.", style="dim"))
    elif parts.shortened:
        lines.append(Text("Shortened to fit a screen: -v prints all rows.", style="dim"))
    if step := summary.next_step:
        command, shows = printable(step.command), printable(tells(step))
        lines.append(Text("Next: ").append(command, style="bold").append(f"  # {shows}", style="dim"))
    return lines


def _calls_blocks(summary: Summary, width: int, parts: Parts) -> list[RenderableType]:
    """The calls that were timed, and the processes compared with each other."""
    from rich.text import Text

    blocks: list[RenderableType] = []
    if summary.events:
        blocks += [Text(), events_table(summary.events, summary.duration_ns, parts.top, summary.view)]
    if summary.calls:
        blocks += [Text(), calls_table(summary.calls, width, parts.top, summary.view)]
        blocks += [Text(outside_ioctls.line(summary.outside_ioctls))] if summary.outside_ioctls else []
        number = parts.calls if summary.view.histograms is None else summary.view.histograms
        timed = [each for each in summary.calls if each.total.count]
        blocks += [block for each in timed[:number] for block in (Text(), histogram(each))]
    blocks += answer_blocks(summary.answers, parts.top)
    if summary.copies:
        blocks += [Text(), copies_table(summary.copies, parts.top)]
    if len(summary.call_times) > 1 or (summary.call_times and parts.notes):
        blocks += [Text(), times_table(summary.call_times, parts.top)]
    blocks += [block for each in summary.shared[: parts.calls] for block in (Text(), matrix(each))]
    blocks += [block for each in summary.alike if parts.alike for block in (Text(), outliers_table(each))]
    return blocks


def _collectives_tables(summary: Summary, parts: Parts) -> list[Table]:
    if not summary.collectives:
        return []
    from .collectives_table import collectives_tables  # not needed by others

    return collectives_tables(summary.collectives, parts.top)


def _steps_tables(summary: Summary, parts: Parts) -> list[Table]:
    if not summary.steps:
        return []
    from .steps_table import steps_tables  # it needs numpy

    return steps_tables(summary.steps, parts.top)


def _open_line(summary: Summary) -> list[RenderableType]:
    from rich.text import Text

    waits = [wait for wait in summary.waits if not (wait.still or wait.idle or wait.in_kernel)]
    number, time = sum(wait.open_count for wait in waits), sum(wait.open_time for wait in waits)
    if not time or time < thresholds.UNFINISHED * summary.times.wall:
        return []
    return [Text(f"{plural(number, 'wait')} had not ended: {duration(time)}, counted up to the end")]


def _who_line(summary: Summary, most: int) -> Text:
    from rich.text import Text

    with_pids = len(_pids(summary)) - summary.kernel_threads <= thresholds.PIDS_SHOWN
    own = [process for process in summary.processes if not process.in_kernel]
    names = [_process(process, with_pids=with_pids) for process in own[:most]]
    hidden = own[most:]
    if hidden:
        names.append(f"{plural(sum(p.number for p in hidden), 'process')} of {plural(len(hidden), 'other name')}")
    if summary.kernel_threads:
        names.append(f"{plural(summary.kernel_threads, 'thread')} of the kernel")
    whom = ", ".join(names) or "nothing"
    where = f" on {printable(summary.host)}" if summary.host else ""
    return Text(f"Traced {whom}: {plural(summary.times.threads, 'thread')} for {duration(summary.duration_ns)}{where}")


def _process(process: Process, *, with_pids: bool) -> str:
    name = printable(process.name)
    number = f"{count(process.number)} × " if process.number > 1 else ""
    if process.ended:
        return f"{number}{name} ({count(process.ended)} of them only as a sum)"
    return f"{number}{name}" + (f" (pid {_ranges(process.pids)})" if with_pids else "")


def _ranges(pids: Sequence[int]) -> str:
    """Sorted numbers as ``4711-4718, 4730``."""
    ranges: list[list[int]] = []
    for pid in pids:
        if ranges and ranges[-1][1] == pid - 1:
            ranges[-1][1] = pid
        else:
            ranges.append([pid, pid])
    shown = [
        shown_id(first) if first == last else f"{shown_id(first)}-{shown_id(last)}"
        for first, last in ranges[: thresholds.PID_RANGES]
    ]
    return ", ".join(shown) + (" …" if len(ranges) > thresholds.PID_RANGES else "")


def _times_line(summary: Summary) -> Text:
    """Line on where the threads' time went, in shares that add up to 100 %."""
    from rich.text import Text

    times = summary.times
    scale = share_scale(times.wall)
    on_cpu, off_cpu, unaccounted = off_cpu_steps(times, scale)
    runnable, *blocked = scale.steps([times.runnable, *times.blocked.values()], off_cpu)
    states = [
        f"{printable(state)} {scale.text(steps, exact)}"
        for (state, exact), steps in zip(times.blocked.items(), blocked, strict=True)
        if exact and exact != sum(times.blocked.values())
    ]
    text = f"Of {duration(times.wall)}: {scale.text(on_cpu, times.on_cpu)} on a core{_cores_used(summary)}"
    text += f", {scale.text(runnable, times.runnable)} waiting for one"
    text += f", {scale.text(sum(blocked), times.off_cpu - times.runnable)} blocked"
    text += f" ({', '.join(states)})" if states else ""
    text += f", {scale.text(unaccounted, times.unaccounted)} not accounted for" if times.unaccounted else ""
    return Text(text)


def _cores_used(summary: Summary) -> str:
    """`` (0.87 of 2)``; "" when unknown."""
    if not summary.duration_ns or not summary.contention:
        return ""
    cpus = frozenset().union(*(each.cpus for each in summary.contention))
    return f" ({summary.times.on_cpu / summary.duration_ns:.2f} of {len(cpus)})" if cpus else ""


def _contention_table(shown: list[Contention], wide: bool) -> RenderableType:
    made = table(*contention_table.headers(wide=wide), last="Process (Runnable: of its threads' time)")
    contention_table.contention_table(shown, made, wide=wide)
    return made


def lost_line(summary: Summary, *, in_short: bool = False) -> Text:
    """Line on what is missing; gaps in the recorded stacks come last, ``in_short`` as one number."""
    from rich.text import Text

    lost = dict(summary.lost)
    if any(isinstance(comment, FramesNameless) for comment in summary.comments):  # it tells more
        lost.pop(NAMELESS, None)
    if not summary.lost:
        return Text("Lost: unknown, nothing was counted")
    missing, cut = divided(lost)
    if in_short and len(cut) > 1:
        cut = {"stacks and frames not complete": sum(cut.values())}
    text = Text("Lost: " if missing else "Nothing lost")
    for i, (kind, number) in enumerate(missing.items()):
        text.append(", " if i else "")
        text.append(counted(number, printable(kind)), style="bold red")
        if time := lost.get(time_of(kind)):
            text.append(f" ({duration(time)})")
    for i, (kind, number) in enumerate(cut.items()):
        text.append(", " if i else "; ")
        text.append(counted(number, printable(kind)))
    text.append(".")
    others = [each for each in summary.comments if not isinstance(each, _SHOWN)]
    if in_short and others:
        text.append(f" {plural(len(others), 'note')} not shown (--json).")
    return text
