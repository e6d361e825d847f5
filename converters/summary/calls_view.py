"""Rows of the table of calls, and their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ..facts.identity import whose
from ..facts.ranks import who
from ..model.calls import CallTimes
from ..model.display import By, CallsView
from .calls import Calls


def _quantile(part: float) -> Callable[[CallTimes], int]:
    return lambda call: call.quantile(part) or 0


SORTS: dict[str, Callable[[CallTimes], int]] = {
    "self": lambda call: call.whole_own,
    "total": lambda call: call.whole,
    "ratio": lambda call: call.whole_own,
    "calls": lambda call: call.count,
    "min": lambda call: call.min,
    "max": lambda call: call.max,
    "ave": lambda call: call.mean,
    "p50": _quantile(0.5),
    "p99": _quantile(0.99),
    "cpu": lambda call: call.on_cpu,
    "blocked": lambda call: call.blocked,
    "queued": lambda call: call.runnable,
    "errors": lambda call: sum(call.errors.values()),
}
"""Keys by which rows are sorted, the largest first, by name of a column. Parts of the time are compared as times."""


class Row(NamedTuple):
    """``who``: process and thread (hostile names); "" in rows of functions, which ``of`` has by process."""

    call: CallTimes
    of: Calls
    who: str = ""


def rows(calls: Sequence[Calls], view: CallsView) -> list[Row]:
    """All rows, in their order."""
    column = SORTS[view.sort]
    made = [row for of in calls for row in _rows(of, view.by)]
    return sorted(
        made, key=lambda row: (-column(row.call), -row.call.whole_own, row.call.name, row.call.where, row.who)
    )


def _rows(of: Calls, by: By) -> Iterator[Row]:
    if by == "function":
        yield Row(of.total, of)
    for process in of.each if by != "function" else ():
        if by == "process":
            yield Row(process, of, _process(process, of))
        for thread in process.threads if by == "thread" else ():
            name = "main" if thread.tid == process.pid else whose(thread.thread, thread.tid)
            yield Row(thread, of, f"{_process(process, of)}::{name}")


def _process(process: CallTimes, of: Calls) -> str:
    """A rank by its number."""
    is_rank = process.pid in of.ranks
    return who(process.process, process.pid, of.ranks) if is_rank else whose(process.process, process.pid)
