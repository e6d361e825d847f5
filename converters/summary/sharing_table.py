"""The matrix of a call: who was inside, and about to return next, while whom waited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import TYPE_CHECKING

from ..base.text import printable
from ..base.units import duration, plural, share
from ..facts import thresholds
from .sharing import Shared

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_OTHERS = "…"
_WAITED = "Waited"


def matrix(of: Shared) -> RenderableType:
    """A row per process that waited, a column per process that was inside, in percent of the row's waiting. The
    processes have letters, so that the columns of many are narrow."""
    from rich.console import Group
    from rich.text import Text

    call = of.call
    waits = _folded(call.waits)
    title = Text(f"{printable(call.name)} {printable(call.device)}", style="bold")
    title.append(": whom they waited for inside, who was next to return (%)", style="not bold")
    return Group(title, _table(of, waits), Text(_told(of)))


def _table(of: Shared, waits: Mapping[tuple[int, int], int]) -> Table:
    from rich.table import Table

    processes, held = _processes(waits), _sums(waits, 1)
    letters = dict(zip((pid for pid in processes if pid), ascii_uppercase, strict=False)) | {0: _OTHERS}
    made = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    for header in ("", _WAITED, *(letters[pid] for pid in processes)):
        made.add_column(header, justify="right", no_wrap=True)
    made.add_column("Process", overflow="fold")
    rest = len({pid for pair in of.call.waits for pid in pair} - {*processes})
    for pid in processes:
        own = sum(ns for (waiter, _), ns in waits.items() if waiter == pid)
        cells = [_percent(waits.get((pid, each), 0), own) for each in processes]
        name = printable(of.who(pid)) if pid else plural(rest, "other")
        made.add_row(letters[pid], duration(own) if own else "-", *cells, name)
    whole = sum(held.values())
    made.add_row("", duration(whole), *(_percent(held.get(pid, 0), whole) for pid in processes), "all")
    return made


def _processes(waits: Mapping[tuple[int, int], int]) -> Sequence[int]:
    """Processes in the order of their ids; 0, which stands for the others, is last."""
    return sorted({pid for pair in waits for pid in pair}, key=lambda pid: (not pid, pid))


def _folded(waits: Mapping[tuple[int, int], int]) -> dict[tuple[int, int], int]:
    """Waits between the processes that held others up, or waited, longest; 0 stands for the others."""
    held, waited = _sums(waits, 1), _sums(waits, 0)
    everybody = sorted({*held, *waited}, key=lambda pid: (-max(held.get(pid, 0), waited.get(pid, 0)), pid))
    shown = set(everybody if len(everybody) <= thresholds.SHARING_ROWS else everybody[: thresholds.SHARING_ROWS - 1])
    found: dict[tuple[int, int], int] = {}
    for pair, ns in waits.items():
        waiter, holder = (pid if pid in shown else 0 for pid in pair)
        found[waiter, holder] = found.get((waiter, holder), 0) + ns
    return found


def _sums(waits: Mapping[tuple[int, int], int], place: int) -> dict[int, int]:
    """Sums of the waits by waiter (0) or holder (1)."""
    found: dict[int, int] = {}
    for pair, ns in waits.items():
        found[pair[place]] = found.get(pair[place], 0) + ns
    return found


def _percent(part: int, whole: int) -> str:
    """Percentage in three characters: ``-`` only for nothing."""
    if not part:
        return "-"
    return "<1" if part * 200 < whole else f"{100 * part / whole:.0f}"


def _told(of: Shared) -> str:
    call = of.call
    told = f"{call.mean_inside:.1f} inside on average, two or more for {share(call.shared, call.busy)} of its time; "
    if of.factor is None:
        return f"{told}no call returned"
    return f"{told}a call takes {of.told_factor}"
