"""Processes that wait for other ones: by name, without what idle threads wait for."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..base.text import printable
from ..base.units import count, duration, share
from ..facts import thresholds
from ..facts.identity import shown_id
from ..model.waits_for import PROCESS
from ..summary.tables import table
from ..summary.waits_for import Blocking

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, slots=True)
class Between:
    """Processes of one name that wait for those of another one. Names are unescaped (hostile)."""

    waiter: str
    waiters: tuple[int, ...]
    """Pids of those that wait."""
    ended_by: str
    enders: tuple[int, ...]
    time: int
    """ns of waits that end with them, at the end of the chain."""


def between(blocking: Blocking | None) -> list[Between]:
    """Waits of processes for others, the longest first; none if one process was traced, or it was not recorded."""
    if blocking is None or blocking.by != PROCESS:
        return []
    times: Counter[tuple[str, str]] = Counter()
    pids: dict[tuple[str, str], tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
    for (victim, end), time in blocking.ends.items():
        one, other = blocking.nodes[victim], blocking.nodes[end]
        if one.kind != PROCESS or other.kind != PROCESS or one.pid == other.pid:
            continue
        names = one.process, other.process
        times[names] += time
        pids[names][0].add(one.pid)
        pids[names][1].add(other.pid)
    found = [
        Between(names[0], tuple(sorted(pids[names][0])), names[1], tuple(sorted(pids[names][1])), time)
        for names, time in times.items()
    ]
    return sorted(found, key=lambda each: (-each.time, each.waiter, each.ended_by))


def told(found: Sequence[Between], waiting: int, trace: int) -> list[Between]:
    """Pairs that matter, at most a few. ``waiting``: ns of all waits that are not idle; ``trace``: ns."""
    least = max(thresholds.BETWEEN * waiting, thresholds.BETWEEN_TIME * trace)
    return [each for each in found if each.time >= least][: thresholds.BETWEEN_ROWS]


def is_told(each: Between, waiters: Collection[int], enders: Collection[int]) -> bool:
    """Whether a row on processes that wait, and on those who end that, tells of it, too."""
    return not set(waiters).isdisjoint(each.waiters) and not set(enders).isdisjoint(each.enders)


def between_table(rows: Sequence[Between], waiting: int) -> Table:
    """A row for each. ``waiting``: ns."""
    made = table("Waited", "Share", last="Who waits → for whom (Share: of all waiting that is not idle)")
    for each in rows:
        names = f"{_who(each.waiter, each.waiters)} → {_who(each.ended_by, each.enders)}"
        made.add_row(duration(each.time), share(each.time, waiting), names)
    return made


def _who(name: str, pids: Sequence[int]) -> str:
    number = f"{count(len(pids))} × " if len(pids) > 1 else ""
    few = f" (pid {', '.join(map(shown_id, pids))})" if 0 < len(pids) <= thresholds.PIDS_SHOWN else ""
    return f"{number}{printable(name)}{few}"
