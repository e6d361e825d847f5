"""The summary of a profile for a person: sentences and tables, for a terminal of any width, a pipe or a file."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from ..base.text import printable
from ..base.units import Scale, count, duration, plural, share, share_scale, time_scale
from ..model.states import RUNNABLE
from . import contention_table
from .answer import people
from .contention import Contention
from .figures import Process, Running, Summary, Times, Wait

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

TOP = 15
"""How many waits are shown."""
_BESIDE_WAITS = 8
"""How many places of work are shown where waits are shown, too."""
_WIDE = 110
"""From this width on, count, mean and max have columns of their own."""
_ENDLESS = 100_000
"""Width of a pipe: nothing is wrapped, so that grep and cut work."""
_NAMES = 8
"""How many process names, and ranges of process ids per name, are listed."""
_ASCII = str.maketrans({"→": "->", "│": "|", "≤": "<=", "×": "x", "…": "...", "µ": "u"})
_TRAILING = re.compile(r" +(?=\n)")


def render(
    summary: Summary, file: TextIO, *, width: int | None = None, color: bool | None = None, top: int = TOP
) -> None:
    """Writes the summary to ``file``.

    ``width`` in columns: None is the terminal's, and no limit where ``file`` is not a terminal. ``color``:
    None means on a terminal, unless NO_COLOR is set or the terminal is dumb. Names are made safe to print
    and wrapped, never cut. What ``file`` cannot encode is written in ASCII.
    """
    terminal = file.isatty()
    if color is None:
        color = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    buffer = io.StringIO()
    console = _console(buffer, width or (_terminal_width(file) if terminal else _ENDLESS), color)
    for block in _blocks(summary, console.width, top):
        console.print(block)
    file.write(_encodable(_TRAILING.sub("", buffer.getvalue()), file.encoding))


def _console(buffer: TextIO, width: int, color: bool) -> Console:
    from rich.console import Console

    return Console(
        file=buffer,
        width=width,
        color_system="standard" if color else None,
        force_terminal=color,
        no_color=False,
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=False,
        legacy_windows=False,
    )


def _terminal_width(file: TextIO) -> int:
    try:
        return os.get_terminal_size(file.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _encodable(text: str, encoding: str | None) -> str:
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        codec = encoding or "utf-8"
        return text.translate(_ASCII).encode(codec, errors="backslashreplace").decode(codec)
    return text


def _blocks(summary: Summary, width: int, top: int) -> list[RenderableType]:
    from rich.text import Text

    blocks: list[RenderableType] = [Text(printable(sentence), style="bold") for sentence in summary.answer]
    blocks += [Text(printable(sentence), style="bold") for sentence in summary.trouble]
    blocks += [Text(), _who_line(summary)]
    if summary.times.wall:
        blocks += [Text(), _times_table(summary.times)]
    if summary.running:
        blocks += [Text(), _running_table(summary, width, min(top, _BESIDE_WAITS) if summary.waits else top)]
    if summary.waits:
        blocks += [Text(), _waits_table(summary, width, top)]
        open_count = sum(wait.open_count for wait in summary.waits)
        open_time = sum(wait.open_time for wait in summary.waits)
        if open_count:
            still = f"{plural(open_count, 'wait')} had not ended when the trace did"
            blocks.append(Text(f"{still}: {duration(open_time)}, counted above up to then"))
    if shown := contention_table.rows(summary.contention):
        blocks += [Text(), _contention_table(shown, width >= _WIDE)]
    blocks += [Text(), _lost_line(summary.lost)]
    blocks += [Text(f"Note: {printable(comment)}") for comment in summary.comments]
    return blocks


def _who_line(summary: Summary) -> Text:
    from rich.text import Text

    names = [_process(process) for process in summary.processes[:_NAMES]]
    hidden = summary.processes[_NAMES:]
    if hidden:
        names.append(f"{plural(sum(len(p.pids) for p in hidden), 'process')} of {plural(len(hidden), 'other name')}")
    whom = ", ".join(names) or "nothing"
    where = f" on {printable(summary.host)}" if summary.host else ""
    return Text(f"Traced {whom}: {plural(summary.times.threads, 'thread')} for {duration(summary.duration_ns)}{where}")


def _process(process: Process) -> str:
    name = printable(process.name)
    number = f"{len(process.pids)} × " if len(process.pids) > 1 else ""
    return f"{number}{name} (pid {_ranges(process.pids)})"


def _ranges(pids: Sequence[int]) -> str:
    """``4711-4718, 4730`` of sorted numbers."""
    ranges: list[list[int]] = []
    for pid in pids:
        if ranges and ranges[-1][1] == pid - 1:
            ranges[-1][1] = pid
        else:
            ranges.append([pid, pid])
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[:_NAMES]]
    return ", ".join(shown) + (" …" if len(ranges) > _NAMES else "")


def _table(*numbers: str, last: str) -> Table:
    """Columns of numbers, then one that takes the rest of the width and wraps."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for header in numbers:
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column(last, overflow="fold")
    return table


def _times_table(times: Times) -> RenderableType:
    whose = "the wall time of " + ("all " if times.threads > 1 else "") + plural(times.threads, "thread")
    table = _table("Time", "Share", last=f"of {whose}")
    names = ["on-CPU", "runnable: waiting for a core", "blocked", *(f"  {printable(state)}" for state in times.blocked)]
    names += ["not accounted for", "wall"]
    needed = [True, True, True, *times.blocked.values(), times.unaccounted, True]
    columns = [_times_cells(times, scale) for scale in (time_scale(times.wall), share_scale(times.wall))]
    for name, need, *cells in zip(names, needed, *columns, strict=True):
        if need:
            table.add_row(*cells, name)
    return table


def _times_cells(times: Times, scale: Scale) -> list[str]:
    """One column of `_times_table`: parts that add up to what stands under them."""
    on_cpu, off_cpu, unaccounted = _off_cpu_steps(times, scale)
    runnable, *blocked = scale.steps([times.runnable, *times.blocked.values()], off_cpu)
    steps = [on_cpu, runnable, sum(blocked), *blocked, unaccounted, on_cpu + off_cpu + unaccounted]
    exact = [times.on_cpu, times.runnable, times.off_cpu - times.runnable, *times.blocked.values()]
    return [scale.text(*cell) for cell in zip(steps, [*exact, times.unaccounted, times.wall], strict=True)]


def _off_cpu_steps(times: Times, scale: Scale) -> list[int]:
    """On-CPU, off-CPU and unaccounted time."""
    return scale.steps([times.on_cpu, times.off_cpu, times.unaccounted])


def _waits_table(summary: Summary, width: int, top: int) -> RenderableType:
    from rich.text import Text

    wide = width >= _WIDE
    numbers = ("Time", "Share", "Count", "Mean", "Max") if wide else ("Time", "Share")
    table = _table(*numbers, last="Where (Share: of all threads' wall time)")
    wall = summary.times.wall
    times = _wait_cells(summary, top, time_scale(wall or sum(wait.time for wait in summary.waits)))
    of_wall = _wait_cells(summary, top, share_scale(wall)) if wall else ["-"] * len(times)
    cells = list(zip(times, of_wall, strict=True))
    shown, rest = summary.waits[:top], summary.waits[top:]
    for i, wait in enumerate(shown):
        if wait.idle and (i == 0 or not shown[i - 1].idle):
            text = "idle, or waiting for others:"
            table.add_row(*[""] * len(numbers), Text(text, style="italic"))
        table.add_row(*cells[i], *(_statistics(wait) if wide else ()), _where(wait, with_statistics=not wide))
    if rest:
        idle = sum(wait.idle for wait in rest)
        name = plural(len(rest), "more place") + (f", {count(idle)} of them of idle threads" if idle else "")
        table.add_row(*_sum_row(cells[-2], rest, wide), name)
    if len(summary.waits) > 1:
        table.add_row(*_sum_row(cells[-1], summary.waits, wide), f"all {plural(len(summary.waits), 'place')}")
    return table


def _running_table(summary: Summary, width: int, top: int) -> RenderableType:
    """On-CPU samples: what is executed."""
    weight = summary.weight
    assert weight is not None
    is_time = weight.unit == "nanoseconds"
    wide = width >= _WIDE
    total = sum(each.weight for each in summary.running)
    numbers = ("Time" if is_time else "Count", "Share", *(("Samples",) if wide else ()))
    table = _table(*numbers, last=f"What runs (Share: of all {'on-CPU time' if is_time else weight.name})")
    shown, rest = summary.running[:top], summary.running[top:]
    parts = [each.weight for each in shown] + ([sum(each.weight for each in rest)] if rest else [])
    columns = [
        _running_cells(parts, scale) for scale in ((time_scale(total),) if is_time else ()) + (share_scale(total),)
    ]
    if not is_time:
        columns.insert(0, [count(part) for part in [*parts, total]])
    cells = list(zip(*columns, strict=True))
    for i, each in enumerate(shown):
        table.add_row(*cells[i], *((count(each.samples),) if wide else ()), _work(each, with_samples=not wide))
    if rest:
        samples = (count(sum(each.samples for each in rest)),) if wide else ()
        table.add_row(*cells[-2], *samples, plural(len(rest), "more place"))
    if len(summary.running) > 1:
        samples = (count(sum(each.samples for each in summary.running)),) if wide else ()
        table.add_row(*cells[-1], *samples, f"all {plural(len(summary.running), 'place')}")
    return table


def _running_cells(parts: list[int], scale: Scale) -> list[str]:
    """Parts that add up to what stands under them."""
    steps = scale.steps(parts)
    return [scale.text(*cell) for cell in zip([*steps, sum(steps)], [*parts, sum(parts)], strict=True)]


def _work(work: Running, *, with_samples: bool) -> Text:
    """Chain │ kernel, and under it the threads."""
    from rich.text import Text

    chain = " → ".join(printable(frame) for frame in work.frames)
    text = Text(chain or "(no user stack)", style="bold")
    text.append(" │ in the kernel" if work.in_kernel else "", style="not bold cyan")
    details = [plural(work.samples, "sample")] if with_samples else []
    details.append(printable(people(work.who)))
    if work.threads_weight:
        its = "its" if work.threads == 1 else "their"
        details.append(f"{share(work.weight, work.threads_weight)} of {its} time on a core")
    return text.append("\n" + ", ".join(details), style="not bold dim")


def _contention_table(shown: list[Contention], wide: bool) -> RenderableType:
    table = _table(*contention_table.headers(wide=wide), last="Process (Runnable: of its threads' wall time)")
    contention_table.contention_table(shown, table, wide=wide)
    return table


def _wait_cells(summary: Summary, top: int, scale: Scale) -> list[str]:
    """One column of `_waits_table`: each wait shown, the rest if there is one, and the sum of these as printed."""
    times, rest = summary.times, summary.waits[top:]
    parts = [wait.time for wait in summary.waits[:top]] + ([sum(wait.time for wait in rest)] if rest else [])
    # What is the same time in the table above must be the same number here.
    same = times.wall > 0 and sum(parts) == times.off_cpu
    steps = scale.steps(parts, _off_cpu_steps(times, scale)[1] if same else None)
    return [scale.text(*cell) for cell in zip([*steps, sum(steps)], [*parts, sum(parts)], strict=True)]


def _sum_row(cells: Sequence[str], waits: Sequence[Wait], wide: bool) -> list[str]:
    return [*cells, *([count(sum(wait.count for wait in waits)), "", ""] if wide else [])]


def _statistics(wait: Wait) -> tuple[str, str, str]:
    return count(wait.count), duration(wait.mean), duration(wait.max)


def _where(wait: Wait, *, with_statistics: bool) -> Text:
    """Chain │ kernel wait, and under it the state and the threads."""
    from rich.text import Text

    chain = " → ".join(printable(frame) for frame in wait.frames)
    if wait.runnable:
        kernel = f"waiting for a core ({printable(wait.state.removeprefix(RUNNABLE))})"
    else:
        kernel = printable(wait.kernel)
    text = Text(chain or "(no user stack)", style="bold")
    text.append(f" │ {kernel}" if kernel else "", style="not bold cyan")
    if with_statistics:
        number, mean, longest = _statistics(wait)
        text.append(f"\n{number} waits, mean {mean}, max {longest}", style="not bold dim")
    details = [] if wait.runnable else [printable(wait.state)]
    details.append(printable(people(wait.who)))
    if wait.threads_wall:
        details.append(f"{share(wait.time, wait.threads_wall)} of {'its' if wait.threads == 1 else 'their'} time")
    return text.append("\n" + ", ".join(details), style="not bold dim")


def _lost_line(lost: dict[str, int]) -> Text:
    from rich.text import Text

    text = Text("Lost: " if lost else "Lost: unknown, nothing was counted")
    for i, (kind, number) in enumerate(lost.items()):
        text.append(", " if i else "")
        text.append(f"{count(number)} {printable(kind)}", style="bold red" if number else "")
    return text
