"""The table of locks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..base.text import printable
from ..base.units import count, duration, plural, share
from ..facts import thresholds
from ..facts.locks import is_convoy, ranked
from ..model.locks import OWNER, WAKER, LockThread, LockTimes
from ..phrases.locks import company, title
from .tables import table

if TYPE_CHECKING:
    from rich.table import Table

_SOURCES = {OWNER: "held by", WAKER: "given back by"}


def shown_locks(locks: Sequence[LockTimes], wall: int, most: int = thresholds.LOCK_ROWS) -> list[LockTimes]:
    """The locks of the table; those whose waits are no contention are left out."""
    wanted = [lock for lock in ranked(locks) if lock.is_contention is not False]
    return [lock for i, lock in enumerate(wanted[:most]) if not i or lock.time >= thresholds.ROW * wall]


def locks_table(locks: Sequence[LockTimes], wall: int, most: int = thresholds.LOCK_ROWS) -> Table:
    """A row per lock, and below it who waits where, and who has it meanwhile."""
    made = table("Waited", "Share", "Waits", "Max", last="Lock (Share: of all threads' time)")
    for lock in shown_locks(locks, wall, most):
        cells = duration(lock.time), share(lock.time, wall) if wall else "-", count(lock.waits), duration(lock.max)
        made.add_row(*cells, "\n".join(_lines(lock)))
    return made


def _lines(lock: LockTimes) -> list[str]:
    lines = [printable(title(lock))]
    number = len(lock.waiters) + lock.more_waiters
    where = f" in {' → '.join(map(printable, lock.places[0].frames))}" if lock.places and lock.places[0].frames else ""
    lines.append(f"{plural(number, 'thread')} waited{where}")
    known = sum(holder.time for holder in lock.holders)
    for source in dict.fromkeys(holder.source for holder in lock.holders):
        told = [_who(holder, lock) for holder in lock.holders if holder.source == source]
        more = len(told) - thresholds.HOLDERS_NAMED
        rest = f" and {plural(more, 'thread')} more" if more > 0 else ""
        lines.append(f"{_SOURCES.get(source, 'written by')} {', '.join(told[: thresholds.HOLDERS_NAMED])}{rest}")
    if lock.time and not known:
        lines.append("who had it is not known")
    if crowd := company(lock):
        lines.append(crowd)
    if is_convoy(lock):
        lines.append(f"convoy: somebody always waited for {duration(lock.queue)}, {plural(lock.queue_waits, 'wait')}")
    if lock.open_count:
        lines.append(f"{plural(lock.open_count, 'wait')} had not ended")
    return lines


def _who(holder: LockThread, lock: LockTimes) -> str:
    name = printable(holder.process)
    if holder.thread != holder.process:
        name += f" ({printable(holder.thread)})"
    where = f" in {' → '.join(map(printable, holder.frames))}" if holder.frames else ""
    return f"{name} {holder.tid}{where} {share(holder.time, lock.time)}"
