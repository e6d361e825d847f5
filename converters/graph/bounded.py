"""A wait-for graph with few nodes and edges: what is rare becomes one node, and no time is lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TypeVar

from ..model.waits_for import OTHER, Node, WaitGraph

OTHERS = Node(OTHER, name="[other]")
_Key = TypeVar("_Key")


def bounded(graph: WaitGraph, nodes: int, edges: int) -> WaitGraph:
    """The graph with at most ``nodes`` nodes and `OTHERS`, and at most ``edges`` edges of any two of the nodes. What a
    node waits for on its other edges goes to `OTHERS`."""
    kept = _most(_weights(graph), nodes)
    few = graph.mapped(lambda node: node if node in kept else OTHERS, {OTHERS: (OTHERS.name, "")})
    by_edge = {pair: max(edge.waited, edge.passed_on) for pair, edge in few.edges.items()}
    told = _most({pair: time for pair, time in by_edge.items() if OTHERS not in pair}, edges)
    made = WaitGraph(names=dict(few.names), traced=few.traced, by=few.by)
    for (victim, waker), edge in few.edges.items():
        made.edges[victim, waker if (victim, waker) in told else OTHERS].add(edge)
    ends = _most(few.ends, edges)
    for (victim, end), time in few.ends.items():
        made.ends[victim, end if (victim, end) in ends else OTHERS] += time
    if any(OTHERS in pair for pair in (*made.edges, *made.ends)):
        made.names.setdefault(OTHERS, (OTHERS.name, ""))
    else:
        made.names.pop(OTHERS, None)
    return made


def without_victims(graph: WaitGraph, left_out: set[Node]) -> WaitGraph:
    """The graph without what these nodes wait for."""
    made = WaitGraph(names=dict(graph.names), traced=graph.traced - left_out, by=graph.by)
    for (victim, waker), edge in graph.edges.items():
        if victim not in left_out:
            made.edges[victim, waker].add(edge)
    for (victim, end), time in graph.ends.items():
        if victim not in left_out:
            made.ends[victim, end] += time
    return made


def used(graph: WaitGraph) -> list[Node]:
    """The nodes with an edge, sorted."""
    return sorted({node for pair in graph.edges for node in pair})


def _weights(graph: WaitGraph) -> dict[Node, int]:
    """Weight of each node: the most time that it waits, or others wait for it. Some only end chains, of which the edges
    between are left out."""
    of: dict[Node, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for (victim, waker), edge in graph.edges.items():
        of[victim][0] += edge.waited
        of[waker][1] += edge.waited
        of[waker][2] += edge.passed_on
    for (_, end), time in graph.ends.items():
        of[end][3] += time
    return {node: max(times) for node, times in of.items()}


def _most(weights: Mapping[_Key, int], number: int) -> set[_Key]:
    ordered = sorted(weights, key=lambda key: (-weights[key], key))
    return set(ordered[:number])
