"""What of a summary is printed where lines are few: its sentences stay in sight, with the rows that tell most."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from . import contention_table
from .locks_table import shown_locks

if TYPE_CHECKING:
    from .figures import Summary

LINES = 23
"""Lines of a 24-line terminal, without the prompt."""
MORE_LINES = 39
"""The same for many processes, or calls: their tables are longer."""
SMALLEST, LARGEST = 24, 60
"""Heights that are used: on a smaller terminal the first lines scroll away, on a larger one nobody reads more."""
FEW = 4
"""Up to this many processes have a summary that fits the smaller screen."""
TOP = 15
"""How many waits are shown where there is room."""
_MOST_THAT_FIT, _ENOUGH, _LEAST = 8, 3, 1
"""Most and fewest waits on the smaller screen, and how many are more important than the table of processes."""


class Parts(NamedTuple):
    """What of a summary is printed."""

    top: int = TOP
    """How many waits."""
    processes: bool = True
    """The table of the processes' threads and cores."""
    notes: bool = True
    running: bool = True
    """Running threads, even if they take little time."""
    blocking: int = 6
    """Rows of who blocks whom."""
    matrix: bool = True
    """Who waits for whom, by pairs."""
    locks: int = 8
    """Rows, without notes 0."""
    path: int = 10
    """Rows of the critical path."""
    calls: int = 2
    """Calls with the distribution of their latencies, and with who was inside while whom waited."""
    alike: bool = True
    """Processes compared with each other."""
    names: int = 8
    """Names of processes."""
    tables: bool = True
    """Any table at all."""
    shortened: bool = False
    """It says that there are more rows."""


def for_few(*, several: bool, blocking: bool, calls: bool) -> list[Parts]:
    """For the smaller screen, of one or ``several`` processes: longer ones first."""
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
    """For the larger screen: longer ones first."""
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
    return [(parts, room) for parts in (*longer, *steps, last, last._replace(tables=False))]


def in_any(steps: list[Parts], room: int) -> list[tuple[Parts, int]]:
    """The same for a screen whose height is not known."""
    return [(parts, room) for parts in steps]


def left_out(summary: Summary, parts: Parts, *, with_processes: bool) -> list[str]:
    """Tables of ``summary`` of which nothing is printed. ``with_processes``: there is room for that of processes."""
    wall = summary.times.wall
    tables = (
        (summary.waits, parts.tables, "waits"),
        (summary.blocking and summary.blocking.total, parts.blocking, "who blocks whom"),
        (shown_locks(summary.locks, wall), parts.notes, "locks"),
        (summary.critical, parts.path, "critical path"),
        (with_processes and contention_table.rows(summary.contention), parts.processes, "processes and their cores"),
        (summary.alike, parts.alike, "processes compared"),
        (summary.calls, parts.calls, "latencies of calls"),
    )
    return [name for is_there, is_shown, name in tables if is_there and not is_shown]
