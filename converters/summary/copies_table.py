"""The table of copies: those of all processes by function and direction, their bytes and how fast they were."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..base.text import printable
from ..base.units import count, duration, plural, share
from ..model.copies import Copies
from .tables import table

if TYPE_CHECKING:
    from rich.console import RenderableType

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def copies_table(copies: Sequence[Copies], top: int) -> RenderableType:
    """A row per function and direction, of all processes together, the longest time first."""
    made = table("Copies", "Size", "Mean size", "Time", "Blocked", "Rate", last="Direction and function")
    groups: dict[tuple[str, str, str, bool], list[Copies]] = defaultdict(list)
    for each in copies:
        groups[each.name, each.library, each.direction, each.is_async].append(each)
    rows = sorted((_together(each) for each in groups.values()), key=lambda one: (-one.total, one.name, one.direction))
    for one in rows[:top]:
        sized = one.count - one.unknown
        mean = size_text(one.bytes // sized) if sized else "-"
        rate = "-" if one.bandwidth is None else f"{size_text(round(one.bandwidth))}/s"
        blocked = share(one.blocked, one.total) if one.total else "-"
        how = "async" if one.is_async else "sync"
        what = f"{one.direction}, {how}: {printable(one.name)} {printable(one.library)}"
        if one.unknown:
            what += f"; {count(one.unknown)} of them of unknown size"
        made.add_row(count(one.count), size_text(one.bytes), mean, duration(one.total), blocked, rate, what)
    if len(rows) > top:
        made.add_row(*[""] * 6, plural(len(rows) - top, "more function"))
    return made


def _together(copies: Sequence[Copies]) -> Copies:
    first = copies[0]
    return Copies(
        *(first.name, first.library, first.pid, first.process, first.direction, first.is_async),
        *(sum(getattr(each, name) for each in copies) for name in ("count", "bytes", "unknown")),
        *(sum(getattr(each, name) for each in copies) for name in ("total", "blocked", "runnable")),
    )


def size_text(number: int) -> str:
    """``1.50 MiB``."""
    amount, unit = float(number), 0
    while amount >= 1023.5 and unit < len(_UNITS) - 1:
        amount /= 1024
        unit += 1
    if not unit:
        return f"{number} B"
    return f"{amount:,.{2 if amount < 9.995 else 1 if amount < 99.95 else 0}f} {_UNITS[unit]}"
