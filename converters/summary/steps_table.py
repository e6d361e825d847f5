"""The tables of steps: how long they take, what they wait for, and the slowest."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..base.text import printable
from ..base.units import count, duration, plural, share
from ..facts import thresholds
from ..model.steps import Spent, Steps, StepWait
from .step_sentences import each_function, sentences
from .tables import table

if TYPE_CHECKING:
    from rich.table import Table

_WIDTH = 160
"""Characters of a line of text."""


def steps_tables(found: Sequence[Steps], top: int) -> list[Table]:
    """A row per function and thread; then for the longest of these their waits, and their slowest steps."""
    found = each_function(found)
    made = [_overview(found, top)]
    for each in found[: thresholds.STEP_THREADS]:
        if each.steps.waits or each.between.waits:
            made.append(_waits(each, top))
        if each.steps.count > 1:
            made.append(_slowest(each, top))
    return made


def text_of(found: Sequence[Steps], top: int, width: int = _WIDTH) -> Iterator[str]:
    """The lines of the sentence and of the tables, in ``width`` characters."""
    from rich.console import Console

    yield from map(printable, sentences(found))
    for each in steps_tables(found, top):
        console = Console(
            file=io.StringIO(), width=width, color_system=None, markup=False, emoji=False, highlight=False
        )
        with console.capture() as captured:
            console.print(each)
        yield ""
        yield from (line.rstrip() for line in captured.get().splitlines())


def _overview(found: Sequence[Steps], top: int) -> Table:
    last = "Step: shares of the steps' time; between: from one to the next, and its share of the loop"
    made = table("Steps", "Per s", "Mean", "Median", "Max", "On CPU", "Blocked", "No core", last=last)
    shown = max(top, len({each.name for each in found}))
    for each in found[:shown]:
        spent = each.steps
        shares = (share(part, spent.wall) for part in (spent.on_cpu, spent.blocked, spent.runnable))
        times = map(duration, (spent.mean, each.median, each.max))
        text = _whose(each)
        if each.between.count:
            loop = spent.wall + each.between.wall
            text += f"; between {duration(each.between.mean)}, {share(each.between.wall, loop)}"
        if each.not_whole:
            text += f"; {plural(each.not_whole, 'step')} not whole, and not counted"
        made.add_row(count(spent.count), _per_second(each.per_second), *times, *shares, text)
    if len(found) > shown:
        made.add_row(*[""] * 8, f"{count(len(found) - shown)} more: these functions in other threads")
    return made


def _per_second(rate: float | None) -> str:
    """``101``, ``4.25``; "-" if unknown."""
    return "-" if rate is None else f"{rate:,.{0 if rate >= 99.5 else 2}f}"


def _whose(each: Steps) -> str:
    return printable(f"{each.name} in {each.process} ({each.thread} {each.tid})")


def _waits(each: Steps, top: int) -> Table:
    title = f"Blocked in and between steps of {_whose(each)}; share of the loop"
    made = table("Share", "A step", "Count", "Mean", last=title)
    loop = each.steps.wall + each.between.wall
    rows = [*_told("in", each.steps), *_told("between", each.between)]
    rows = sorted((row for row in rows if row[1].time >= thresholds.STEP_ROW * loop), key=lambda row: -row[1].time)
    for where, wait in rows[:top]:
        place = " → ".join(map(printable, wait.site.frames)) or "(no user stack)"
        place += f" │ {printable(wait.site.kernel)}" if wait.site.kernel else ""
        per_step = duration(wait.time // max(each.steps.count, 1))
        made.add_row(
            share(wait.time, loop),
            per_step,
            count(wait.number),
            duration(wait.time // wait.number),
            f"{where}: {place}",
        )
    return made


def _told(where: str, spent: Spent) -> Iterator[tuple[str, StepWait]]:
    return ((where, wait) for wait in spent.waits)


def _slowest(each: Steps, top: int) -> Table:
    made = table(
        "Step", "At", "Took", "On CPU", "Blocked", "No core", last=f"Slowest steps of {_whose(each)}; longest wait"
    )
    for step in each.slowest[:top]:
        spent = step.spent
        wait = spent.waits[0] if spent.waits else None
        place = f"{' → '.join(map(printable, wait.site.frames))} {duration(wait.time)}" if wait else "-"
        times = map(duration, (spent.wall, spent.on_cpu, spent.blocked, spent.runnable))
        made.add_row(count(step.number), duration(step.begin), *times, place)
    return made
