"""Collectives that are captured into a CUDA graph ("CUDA Graphs", CUDA's programming guide): the call launches nothing,
and the launch of the graph makes no call."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from .brackets import brackets
from .records import CallTable
from .signatures import BEGINS_CAPTURE, ENDS_CAPTURE, LAUNCHES_GRAPH, signature_of


class Captured(NamedTuple):
    """A table without the collectives and messages that were captured."""

    table: CallTable
    calls: int
    """Calls that are left out."""
    launches: int
    """Launches of graphs by the processes of the table."""


def without_captured(table: CallTable) -> Captured:
    """Leaves them out. What a thread calls between the begin and the end of a capture is part of it: it goes to streams
    that join the captured one."""
    import numpy as np

    keep = np.ones(len(table.calls), bool)
    for bracket in brackets(table, BEGINS_CAPTURE, ENDS_CAPTURE):
        keep[list(bracket.rows)] = False
    left_out = int((~keep).sum())
    kept = replace(table, calls=table.calls[keep]) if left_out else table
    return Captured(kept, left_out, _launches(table))


def _launches(table: CallTable) -> int:
    """Launches of graphs. The runtime calls the driver: of a process, the function with more calls counts."""
    import numpy as np

    of_graphs = [place for place, name in enumerate(table.names) if _launches_graph(name)]
    calls = table.calls[np.isin(table.calls["function"], of_graphs)]
    most: dict[int, int] = {}
    found, numbers = np.unique(calls[["pid", "function"]], return_counts=True)
    for (pid, _), number in zip(found.tolist(), numbers.tolist(), strict=True):
        most[pid] = max(most.get(pid, 0), number)
    return sum(most.values())


def _launches_graph(name: str) -> bool:
    of = signature_of(name)
    return of is not None and of.kind == LAUNCHES_GRAPH
