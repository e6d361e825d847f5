"""Calls in groups: NCCL launches nothing before the outermost group ends ("Group Calls", its documentation).

So a rank comes to them when it calls ncclGroupEnd, whenever it has asked for them. Collectives of one communicator in
one group are one meeting: they are launched together, and ranks wait for each other once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from .brackets import brackets
from .records import CallTable
from .signatures import BEGINS_GROUP, COLLECTIVE, ENDS_GROUP, Signature, signature_of


def launched(table: CallTable) -> CallTable:
    """The table with calls at the times when they were launched: those in groups have the times of the group's end, and
    those of groups that did not end are left out. Of collectives of one communicator in one group, the first one stands
    for all, see `CallTable.grouped`."""
    import numpy as np

    groups = list(brackets(table, BEGINS_GROUP, ENDS_GROUP))
    if not groups:
        return table
    known = [signature_of(name) for name in table.names]
    calls, keep = table.calls.copy(), np.ones(len(table.calls), bool)
    grouped: dict[int, list[int]] = {}
    for group in groups:
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
