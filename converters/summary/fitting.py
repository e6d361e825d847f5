"""Parts of a summary that are printed where lines are few: its sentences stay in sight, with the rows that tell
most."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ..facts import thresholds
from .contention_table import rows as contention_rows
from .locks_table import shown_locks

if TYPE_CHECKING:
    from .figures import Summary

LINES = 23
"""Lines of a 24-line terminal, without the prompt."""
MORE_LINES = 39
"""Lines for many processes, or calls: their tables are longer."""
SMALLEST, LARGEST = 24, 60
"""Heights that are used: on a smaller terminal the first lines scroll away, on a larger one nobody reads more."""
FEW = 4
"""Limit on the processes of a summary that fits the smaller screen."""
TOP = 15
"""Number of waits that are shown where there is room."""
_MOST_THAT_FIT, _ENOUGH, _LEAST = 8, 3, 1
"""Most and fewest waits on the smaller screen, and how many are more important than the table of processes."""
_WORK = 8
"""Rows of what runs."""


class Parts(NamedTuple):
    """Parts of a summary that are printed."""

    top: int = TOP
    """Number of waits; 0: the longest one, without those of main threads."""
    processes: bool = True
    """The table of the processes' threads and cores."""
    notes: bool = True
    running: bool = True
    """Running threads, even if they take little time."""
    work: int = _WORK
    """Rows of what runs beside waits; 0: not even if that takes much time."""
    blocking: int = thresholds.BLOCKING_ROWS
    """Rows of who blocks whom."""
    matrix: bool = True
    """Table of who waits for whom, by pairs."""
    locks: int = thresholds.LOCK_ROWS
    """Number of rows of locks; without notes 0."""
    path: int = thresholds.PATH_ROWS
    """Rows of the critical path."""
    calls: int = 2
    """Calls with the distribution of their latencies, and with who was inside while whom waited."""
    alike: bool = True
    """Processes compared with each other."""
    names: int = 8
    """Number of names of processes."""
    tables: bool = True
    """Any table at all."""
    shortened: bool = False
    """Note that there are more rows."""


def for_few(*, several: bool, blocking: bool, calls: bool) -> list[Parts]:
    """Steps for the smaller screen, of one or ``several`` processes: longer ones first."""
    made = [Parts(top) for top in range(_MOST_THAT_FIT, (_ENOUGH if several else _LEAST) - 1, -1)]
    if blocking:
        made += [Parts(top, blocking=2, matrix=False, locks=1) for top in range(_ENOUGH + 1, _ENOUGH - 1, -1)]
        made += [Parts(top, blocking=0, locks=1) for top in range(_MOST_THAT_FIT, _ENOUGH - 1, -1)]
    if calls:
        return made  # Histograms of calls are longer than a screen.
    if several:
        made += [Parts(top, processes=False, blocking=0) for top in range(_MOST_THAT_FIT, _LEAST - 1, -1)]
    least = [Parts(top, processes=False, notes=False, blocking=0, path=4) for top in range(_ENOUGH, _LEAST - 1, -1)]
    return [*made, *least, *(each._replace(running=False) for each in least)]


def for_many() -> list[Parts]:
    """Steps for the larger screen: longer ones first."""
    less = Parts(7, blocking=4, matrix=False, locks=3, path=6, calls=1, names=4, shortened=True)
    steps = [
        less._replace(matrix=True),
        less,
        less._replace(top=5, blocking=3, locks=2, path=5),
        less._replace(top=4, blocking=3, locks=2, path=4, processes=False),
        less._replace(top=3, blocking=2, locks=1, path=4, processes=False, alike=False),
        less._replace(top=3, blocking=2, locks=1, path=3, processes=False, alike=False, calls=0),
    ]
    last = steps[-1]._replace(notes=False, blocking=1, names=3)
    return [
        Parts(),
        *steps,
        last,
        last._replace(top=2, blocking=0),
        last._replace(top=2, blocking=0, running=False),
        last._replace(top=1, blocking=0, running=False, path=1),
    ]


def in_height(lines: int, steps: list[Parts]) -> list[tuple[Parts, int]]:
    """``steps``, longer ones before and shorter ones after them, each with the lines that it may have on a terminal of
    this height. The last one has the sentences only."""
    room = min(max(lines, SMALLEST), LARGEST) - 1
    last = for_many()[-1]._replace(path=0, names=2)
    longer = [Parts(), Parts(12), Parts(10)]
    least = last._replace(top=0, work=0)
    return [(parts, room) for parts in (*longer, *_some_of_each(steps), last, least, last._replace(tables=False))]


def in_any(steps: list[Parts], room: int) -> list[tuple[Parts, int]]:
    """Steps for a screen whose height is not known."""
    return [(parts, room) for parts in _some_of_each(steps)]


def _some_of_each(steps: list[Parts]) -> list[Parts]:
    """``steps``, and before what runs is left out a row of it and one of the waits."""
    without = next((i for i, parts in enumerate(steps) if i and not parts.running), len(steps))
    row_each = [parts._replace(top=0, work=1) for parts in steps[:without][-1:]] if without < len(steps) else []
    return [*steps[:without], *row_each, *steps[without:]]


def growth() -> tuple[Callable[[Parts], Parts], ...]:
    """Steps that use what room is left, the most important one first: each may be taken several times."""

    def waits(most: int) -> Callable[[Parts], Parts]:
        return lambda parts: parts._replace(top=max(parts.top, min(parts.top + 1, most)))

    return (
        lambda parts: parts._replace(running=True, work=max(parts.work, 1)),
        waits(_ENOUGH),
        lambda parts: parts._replace(work=max(parts.work, min(parts.work + 1, _ENOUGH))),
        lambda parts: parts._replace(notes=True, locks=max(parts.locks, 1)),
        lambda parts: parts._replace(blocking=max(parts.blocking, 2)),
        lambda parts: parts._replace(processes=True),
        lambda parts: parts._replace(alike=True),
        waits(_MOST_THAT_FIT),
    )


def shows_running(summary: Summary, parts: Parts) -> bool:
    """Whether what runs has a table."""
    if not summary.running or not parts.tables:
        return False
    much = summary.times.on_cpu >= thresholds.RUNNING_ROW * summary.times.wall
    if summary.waits and parts.top < TOP and not any(work.samples for work in summary.running):
        return False  # only how much runs is known, which is above the tables
    return not summary.waits or (parts.work > 0 and (parts.running or much))


def left_out(summary: Summary, parts: Parts, *, with_processes: bool) -> list[str]:
    """Tables of ``summary`` of which nothing is printed. ``with_processes``: there is room for that of processes."""
    wall = summary.times.wall
    tables = (
        (any(work.samples for work in summary.running), shows_running(summary, parts), "what runs"),
        (summary.waits, parts.tables, "waits"),
        (summary.blocking and summary.blocking.total, parts.blocking, "who blocks whom"),
        (shown_locks(summary.locks, wall), parts.notes, "locks"),
        (summary.critical, parts.path, "critical path"),
        (with_processes and contention_rows(summary.contention), parts.processes, "processes and their cores"),
        (summary.alike, parts.alike, "processes compared"),
        (summary.calls, parts.calls, "latencies of calls"),
    )
    return [name for is_there, is_shown, name in tables if is_there and not is_shown]
