"""The tables of a summary: waits, and work. Their columns add up to what is printed elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..base.text import printable
from ..base.units import Scale, count, duration, plural, share, share_scale, time_scale
from ..facts import thresholds
from ..phrases import wait_objects
from .core_takers import sentence
from .figures import NAMELESS, Running, Summary, Times, Wait
from .thread_groups import groups_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

WIDE = 110
"""Width from which on count, mean and max have columns of their own."""


def table(*numbers: str, last: str) -> Table:
    """Columns of numbers, then one that takes the rest of the width and wraps."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for header in numbers:
        made.add_column(header, justify="right", no_wrap=True)
    made.add_column(last, overflow="fold")
    return made


def off_cpu_steps(times: Times, scale: Scale) -> list[int]:
    """On-CPU, off-CPU and unaccounted time."""
    return scale.steps([times.on_cpu, times.off_cpu, times.unaccounted])


def waits_table(summary: Summary, width: int, top: int) -> RenderableType:
    """Rows for the ``top`` waits, and for 0 for the longest one alone; the others are counted in shared rows."""
    wide = width >= WIDE
    numbers = ("Time", "Share", "Count", "Mean", "Max") if wide else ("Time", "Share")
    made = table(*numbers, last="Where (Share: of all threads' time; after a name: of its own)")
    shown, folded = _chosen(summary, top)
    parts = [wait.time for wait in shown] + [sum(wait.time for wait in waits) for _, waits in folded]
    wall = summary.times.wall
    times = _cells(summary, parts, time_scale(wall or sum(parts)))
    shares = _cells(summary, parts, share_scale(wall)) if wall else ["-"] * len(parts)
    cells = list(zip(times, shares, strict=True))
    for i, wait in enumerate(shown):
        made.add_row(*cells[i], *(_statistics(wait) if wide else ()), _where(wait, with_statistics=not wide))
    for i, (name, waits) in enumerate(folded, len(shown)):
        number = sum(wait.count for wait in waits)
        made.add_row(*cells[i], *((count(number) if number else "-", "", "") if wide else ()), name)
    return made


def _chosen(summary: Summary, top: int) -> tuple[list[Wait], list[tuple[str, list[Wait]]]]:
    """Waits with their own rows, and those that share one, with its name."""
    kernel = [wait for wait in summary.waits if wait.in_kernel]
    still = [wait for wait in summary.waits if wait.still and not wait.in_kernel]
    if len(still) <= thresholds.STILL_ROWS:
        still = []
    others = [wait for wait in summary.waits if not wait.in_kernel and not (still and wait.still)]
    folds = summary.blocking is not None and not summary.shows_idle and not all(wait.idle for wait in others)
    for_work = [wait for wait in others if wait.idle and folds]
    others = _without(others, for_work)
    telling = [wait for wait in others if wait.time >= thresholds.ROW * summary.times.wall] or others
    first = _first_of_mains([wait for wait in telling if not wait.idle])
    # The longest wait is the one that the answer is about, mostly, whoever waits.
    longest = _without(telling[:1], first)
    rest = _without(telling, [*longest, *first])
    most = max(top, min(len(first) + len(longest), 2 * top), 1)
    kept = set(map(id, [*longest, *first, *rest][:most]))
    shown = [wait for wait in telling if id(wait) in kept]
    hidden = _without(others, shown)
    folded = []
    if hidden:
        number = sum(wait.idle for wait in hidden)
        name = plural(len(hidden), "more place") + (f", {count(number)} of them of idle threads" if number else "")
        folded.append((name, hidden))
    if for_work:
        folded.append((_for_work(for_work), for_work))
    if still:
        folded.append((f"processes that did not move, in {plural(len(still), 'place')}", still))
    if kernel:
        folded.append((f"{plural(summary.kernel_threads, 'thread')} of the kernel", kernel))
    return shown, folded


def _for_work(waits: Sequence[Wait]) -> str:
    """``12 idle threads (4 parked, 8 periodic), in 3 places``"""
    kinds: Counter[str] = Counter()
    for wait in waits:
        kinds[wait.idle_by] += wait.threads
    told = ", ".join(f"{count(number)} {kind}" for kind, number in sorted(kinds.items()) if kind)
    much = plural(sum(wait.threads for wait in waits), "idle thread")
    return f"{much}{f' ({told})' if told else ''}, in {plural(len(waits), 'place')} (--idle shows them)"


def _without(waits: Sequence[Wait], others: Sequence[Wait]) -> list[Wait]:
    # By identity: there may be very many.
    left_out = set(map(id, others))
    return [wait for wait in waits if id(wait) not in left_out]


def _first_of_mains(waits: Sequence[Wait]) -> list[Wait]:
    """The longest wait of main threads, one per process name."""
    seen: set[str] = set()
    first = []
    for wait in waits:
        names = {entry.process for entry in wait.who if entry.main} - seen - {NAMELESS}
        if names and not wait.still:
            seen |= names
            first.append(wait)
    return first


def _cells(summary: Summary, parts: list[int], scale: Scale) -> list[str]:
    """A column whose printed cells add up."""
    times = summary.times
    same = times.wall > 0 and sum(parts) == times.off_cpu
    steps = scale.steps(parts, off_cpu_steps(times, scale)[1] if same else None)
    return [scale.text(*cell) for cell in zip(steps, parts, strict=True)]


def _statistics(wait: Wait) -> tuple[str, str, str]:
    if not wait.count:  # of an engine that samples waits, and does not count them
        return "-", "-", "-"
    return count(wait.count), duration(wait.mean), duration(wait.max)


def _where(wait: Wait, *, with_statistics: bool) -> Text:
    """Chain │ kernel wait, and under it the threads."""
    from rich.text import Text

    chain = " → ".join(printable(frame) for frame in wait.frames)
    label = f"idle ({wait.idle_by}): " if wait.idle_by else "idle: "
    text = Text(label if wait.idle else "did not move: " if wait.still else "", style="italic")
    if wait.runnable:
        text.append("waiting for a core", style="not italic bold cyan")
        text.append(f" in {chain}" if chain else "", style="not italic")
    else:
        text.append(chain or "(no user stack)", style="not italic bold")
        text.append(f" │ {printable(wait.kernel)}" if wait.kernel else "", style="not italic cyan")
        on = wait_objects.short(wait.on)
        text.append(f" │ {printable(on)}" if on else "", style="not italic")
    details = printable(groups_text(wait.who, apart=wait.threads < wait.threads_alike))
    if wait.threads_wall:
        details += f" {share(wait.time, wait.threads_wall)}"
    if with_statistics and wait.count:
        details += f", {count(wait.count)} × {duration(wait.mean)}, max {duration(wait.max)}"
    if wait.mostly[1] >= thresholds.ROW_LOST_IN * wait.time and wait.mostly[0]:
        details += f", {share(wait.mostly[1], wait.time)} of it in {' → '.join(map(printable, wait.mostly[0]))}"
    if wait.takers:
        details += f"; {printable(sentence(wait.takers))}"
    if woken := _woken_by(wait):
        details += f"\nwoken by {woken}"
    return text.append("\n" + details, style="not italic dim")


def _woken_by(wait: Wait) -> str:
    """The main wakers, and their shares of the wait."""
    least = thresholds.ROW_PART * wait.time
    shown = [(waker, time) for waker, time in wait.woken_by[: thresholds.WAKERS_NAMED] if time >= least]
    texts = []
    for waker, time in shown:
        whom = f"{waker.process} ({waker.thread})" if waker.thread else waker.process
        where = f" in {' → '.join(waker.frames)}" if waker.frames else ""
        texts.append(f"{printable(whom + where)} {share(time, wait.time)}")
    return ", ".join(texts)


def running_table(summary: Summary, width: int, top: int) -> RenderableType:
    """On-CPU samples: what is executed."""
    weight = summary.weight
    assert weight is not None
    is_time, wide = weight.unit == "nanoseconds", width >= WIDE
    total = sum(each.weight for each in summary.running)
    whole = summary.times.wall if weight.name == "wall" and summary.times.wall else total
    base = "all threads' time" if whole != total or weight.name == "wall" else "all time on cores"
    numbers = ("Time" if is_time else "Count", "Share", *(("Samples",) if wide else ()))
    whose = f"{base}; after a name: on cores" if is_time else f"all {weight.name}; after a name: of its"
    made = table(*numbers, last=f"What runs (Share: of {whose})")
    telling = [each for each in summary.running if each.samples >= thresholds.ROW_SAMPLES] or list(summary.running)
    shown = telling[:top]
    names = set(map(id, shown))
    rest = [each for each in summary.running if id(each) not in names]
    parts = [each.weight for each in shown] + ([sum(each.weight for each in rest)] if rest else [])
    first = _scaled(parts, time_scale(whole)) if is_time else [count(part) for part in parts]
    cells = list(zip(first, _scaled(parts, share_scale(whole)) if whole else ["-"] * len(parts), strict=True))
    for i, each in enumerate(shown):
        made.add_row(*cells[i], *((count(each.samples),) if wide else ()), _work(each, with_samples=not wide))
    if rest:
        samples = (count(sum(each.samples for each in rest)),) if wide else ()
        made.add_row(*cells[-1], *samples, plural(len(rest), "more place"))
    return made


def _scaled(parts: list[int], scale: Scale) -> list[str]:
    """Printed parts that add up to their printed sum."""
    return [scale.text(*cell) for cell in zip(scale.steps(parts), parts, strict=True)]


def _work(work: Running, *, with_samples: bool) -> Text:
    """Chain │ kernel, and under it the threads."""
    from rich.text import Text

    chain = " → ".join(printable(frame) for frame in work.frames)
    text = Text(chain or "(no user stack)", style="bold")
    text.append(" │ in the kernel" if work.in_kernel else "", style="not bold cyan")
    details = [printable(groups_text(work.who, apart=work.threads < work.threads_alike))]
    if work.threads_weight:
        details[0] += f" {share(work.weight, work.threads_weight)}"
    details += [plural(work.samples, "sample")] if with_samples else []
    return text.append("\n" + ", ".join(details), style="not bold dim")
