"""Wait-for graph of a summary: who blocks whom, and for how long, without threads that only wait for work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..base.text import json_text
from ..facts import thresholds
from ..facts.idle_evidence import node_of
from ..facts.wait_sums import Thread
from ..graph.bounded import bounded, without_victims
from ..graph.knots import knots
from ..model.waits_for import Node, WaitGraph, by_process


class Named(NamedTuple):
    """A node; names are hostile."""

    kind: str
    """Kind of the node, one of `waits_for.KINDS`."""
    process: str
    thread: str
    """"" for all of a process."""
    pid: int
    tid: int
    traced: bool
    """Whether the node's own waits were recorded."""
    waits: int
    """ns."""
    blocks: int
    """ns of others' waits that end with it."""


class KnotOf(NamedTuple):
    """Threads that wait for each other."""

    members: tuple[Named, ...]
    """Nodes that wait for each other, the first ones."""
    number: int
    time: int
    share: float
    """Part of all waiting (0 to 1)."""
    closed: bool
    """Whether they wait for nothing else."""


@dataclass(frozen=True, slots=True)
class Blocking:
    """Times in ns."""

    by: str
    """`waits_for.PROCESS` or `waits_for.THREAD`: what a node is."""
    total: int
    """Time that all nodes waited."""
    idle: int
    """Time that threads waited that only wait for work, or did not move: they are left out."""
    nodes: tuple[Named, ...]
    """Nodes, those that waited or blocked most first."""
    ends: dict[tuple[int, int], int]
    """Blocked time, by (index of who waited, index of the last thread of the chain)."""
    knots: tuple[KnotOf, ...] = ()

    def blocked_by(self, index: int) -> list[tuple[int, int]]:
        """Nodes that blocked this one, and for how long; the longest first."""
        return _ordered((end, time) for (victim, end), time in self.ends.items() if victim == index)

    def blocks(self, index: int) -> list[tuple[int, int]]:
        """Nodes that this one blocked, and for how long; the longest first."""
        return _ordered((victim, time) for (victim, end), time in self.ends.items() if end == index != victim)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``json.dumps``."""
        return {
            "by": self.by,
            "blocked_ns": self.total,
            "idle_ns": self.idle,
            "nodes": [_node_json(node) for node in self.nodes],
            "ends": [{"from": one, "to": other, "time_ns": time} for (one, other), time in self.ends.items()],
            "knots": [
                {
                    "threads": knot.number,
                    "first": [_node_json(node) for node in knot.members],
                    "time_ns": knot.time,
                    "share": round(knot.share, 6),
                    "closed": knot.closed,
                }
                for knot in self.knots
            ],
        }


def blocking(graph: WaitGraph, idle: Iterable[Thread]) -> Blocking:
    """Blocking of all threads without what ``idle`` ones wait for."""
    return blocking_of(graph, {node_of(thread) for thread in idle})


def blocking_of(graph: WaitGraph, idle: set[Node]) -> Blocking:
    """``graph`` is that of threads. With a node per process, unless only one was traced."""
    active = without_victims(graph, idle)
    processes = {node.pid for node in active.traced}
    shown = by_process(active) if len(processes) > 1 else active
    few = bounded(shown, thresholds.NODES_KEPT, thresholds.PAIRS_KEPT)
    waits, blocks = few.waits(), few.blocks()
    nodes = sorted(
        {node for pair in few.ends for node in pair},
        key=lambda node: (-max(waits.get(node, 0), blocks.get(node, 0)), node),
    )
    index = {node: i for i, node in enumerate(nodes)}
    ends = {(index[victim], index[end]): time for (victim, end), time in few.ends.items()}
    return Blocking(
        by=shown.by,
        total=active.total,
        idle=graph.total - active.total,
        nodes=tuple(_named(few, node, waits.get(node, 0), blocks.get(node, 0)) for node in nodes),
        ends=dict(sorted(ends.items(), key=lambda entry: (-entry[1], entry[0]))),
        knots=tuple(_knots(active)),
    )


def _knots(graph: WaitGraph) -> Iterator[KnotOf]:
    total, waits, blocks = graph.total, graph.waits(), graph.blocks()
    for knot in knots(graph):
        if knot.time >= thresholds.KNOT * total:
            members = tuple(_named(graph, node, waits.get(node, 0), blocks.get(node, 0)) for node in knot.nodes)
            yield KnotOf(members[: thresholds.KNOT_NAMED], len(members), knot.time, knot.time / total, knot.closed)


def _named(graph: WaitGraph, node: Node, waits: int, blocks: int) -> Named:
    process, thread = graph.names.get(node, (node.name, ""))
    return Named(node.kind, process, thread, node.pid, node.tid, node in graph.traced, waits, blocks)


def _ordered(times: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
    return sorted(times, key=lambda entry: (-entry[1], entry[0]))


def _node_json(node: Named) -> dict[str, Any]:
    return {
        "kind": node.kind,
        "process": json_text(node.process),
        "thread": json_text(node.thread),
        "pid": node.pid,
        "tid": node.tid,
        "traced": node.traced,
        "blocked_ns": node.waits,
        "blocks_ns": node.blocks,
    }
