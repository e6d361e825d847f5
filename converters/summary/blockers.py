"""Blockers of the threads of a profile with wakers: for the tables of a summary."""

from __future__ import annotations

from collections.abc import Iterable

from ..facts.idle_evidence import node_of
from ..facts.wait_sums import Thread
from ..model.waits_for import WaitGraph
from .blocking import Blocking, blocking_of


def blocking(graph: WaitGraph, idle: Iterable[Thread]) -> Blocking:
    """Blocking of all threads without what ``idle`` ones wait for."""
    return blocking_of(graph, {node_of(thread) for thread in idle})
