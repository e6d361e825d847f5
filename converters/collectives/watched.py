"""Processes that were watched for calls of communication libraries: that one made none is evidence, too."""

from __future__ import annotations

from ..model.collectives import Watched
from .records import CallTable
from .signatures import ASKS, signature_of


def watched(table: CallTable) -> list[Watched]:
    """One for each process, in the order of their ids; none if calls are missing, for nobody knows whose they are."""
    import numpy as np

    if table.lost or table.until is not None:
        return []
    asks = [number for number, name in enumerate(table.names) if (of := signature_of(name)) and of.kind == ASKS]
    calls = table.calls[~np.isin(table.calls["function"], asks)]
    pids, numbers = np.unique(calls["pid"], return_counts=True)
    by_pid = dict(zip(pids.tolist(), numbers.tolist(), strict=True))
    return [Watched(pid, by_pid.get(pid, 0)) for pid in sorted(table.watched)]
