"""Calls in groups: NCCL launches nothing before the outermost group ends ("Group Calls", its documentation).

So a rank comes to them when it calls ncclGroupEnd, whenever it has asked for them. Collectives of one communicator in
one group are one meeting: they are launched together, and ranks wait for each other once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from .records import CallTable
from .signatures import BEGINS_GROUP, COLLECTIVE, ENDS_GROUP, POINT_TO_POINT, Signature, signature_of


class Group(NamedTuple):
    """Rows of the calls that one group launches, and of the call that ends it; None: it did not end."""

    rows: Sequence[int]
    end: int | None


def launched(table: CallTable) -> CallTable:
    """The table with calls at the times when they were launched: those in groups have the times of the group's end, and
    those of groups that did not end are left out. Of collectives of one communicator in one group, the first one stands
    for all, see `CallTable.grouped`."""
    import numpy as np

    known = [signature_of(name) for name in table.names]
    if not any(each and each.kind in (BEGINS_GROUP, ENDS_GROUP) for each in known):
        return table
    calls, keep = table.calls.copy(), np.ones(len(table.calls), bool)
    grouped: dict[int, list[int]] = {}
    for group in _groups(table, known):
        if group.end is None:
            keep[list(group.rows)] = False
            continue
        for name in ("began", "ended"):
            calls[name][list(group.rows)] = calls[name][group.end]
        for same in _by_communicator(table, known, group.rows):
            keep[same[1:]] = False
            grouped[same[0]] = same
    order = np.argsort(calls["began"], kind="stable")
    order = order[keep[order]]
    places = np.full(len(calls), -1, np.int64)
    places[order] = np.arange(len(order))
    parts = {int(places[row]): calls[rows] for row, rows in grouped.items()}
    return replace(table, calls=calls[order], grouped=parts)


def _by_communicator(table: CallTable, known: Sequence[Signature | None], rows: Sequence[int]) -> Iterator[list[int]]:
    """Rows of collectives of each communicator of which a group has several."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for row in rows:
        of = known[table.calls["function"][row]]
        if of and of.kind == COLLECTIVE:
            found[int(table.calls["arguments"][row, of.comm])].append(row)
    yield from (same for same in found.values() if len(same) > 1)


def _groups(table: CallTable, known: Sequence[Signature | None]) -> Iterator[Group]:
    """Groups of all threads."""
    import numpy as np

    kinds = np.array([_KINDS.get(each.kind, 0) if each else 0 for each in known], np.int8)[table.calls["function"]]
    rows = np.flatnonzero(kinds)
    calls = table.calls[rows]
    order = rows[np.lexsort((calls["began"], calls["tid"], calls["pid"]))]
    threads = table.calls[["pid", "tid"]][order]
    for part in np.split(order, np.flatnonzero(threads[1:] != threads[:-1]) + 1):
        of = kinds[part].tolist()
        if _ENDS in of or _BEGINS in of:
            yield from _of_thread(part.tolist(), of, any_lost=table.lost > 0)


_CALLS, _BEGINS, _ENDS = 1, 2, 3
_KINDS = {COLLECTIVE: _CALLS, POINT_TO_POINT: _CALLS, BEGINS_GROUP: _BEGINS, ENDS_GROUP: _ENDS}


def _of_thread(rows: Sequence[int], kinds: Sequence[int], *, any_lost: bool) -> Iterator[Group]:
    """Groups of one thread. The first one may have begun before the trace. ``any_lost``: calls are missing; groups are
    seldom inside of groups, and so one that begins in another one says that the end of that is missing."""
    inside: list[int] = []
    depth, is_first = 0, True
    for row, kind in zip(rows, kinds, strict=True):
        if kind == _CALLS:
            inside += [row] if depth or is_first else []
        elif kind == _BEGINS:
            if not depth or any_lost:
                inside.clear()
            depth = 1 if any_lost else depth + 1
            is_first = False
        else:
            depth -= 1
            if depth == 0 or (depth < 0 and is_first and not any_lost):
                yield Group(tuple(inside), row)
            if depth <= 0:
                inside.clear()
            depth, is_first = max(depth, 0), False
    if depth and inside:
        yield Group(tuple(inside), None)
