"""Knots: threads or processes that wait for each other, found as strongly connected components."""

from __future__ import annotations

from typing import NamedTuple

from ..model.waits_for import Node, WaitGraph

_LITTLE = 100
"""Edges with less than 1/this of all waiting tie no knot: nearly everything waits for everything now and then."""


class Knot(NamedTuple):
    """Each of these waits for each other one, at least through others."""

    nodes: tuple[Node, ...]
    time: int
    """ns of redistributed waiting inside of it."""
    closed: bool
    """Nothing in it waits for anything outside: a knot in the sense of wPerf. To improve what is outside is no use."""


def knots(graph: WaitGraph) -> list[Knot]:
    """The longest first. Also needs networkx."""
    import networkx

    least = sum(edge.passed_on for edge in graph.edges.values()) / _LITTLE
    made = networkx.DiGraph()
    made.add_edges_from(pair for pair, edge in graph.edges.items() if edge.passed_on > least)
    found = []
    for component in networkx.strongly_connected_components(made):
        if len(component) < 2:
            continue
        time = sum(edge.passed_on for pair, edge in graph.edges.items() if component.issuperset(pair))
        leaving = any(to not in component for node in component for to in made.successors(node))
        found.append(Knot(tuple(sorted(component)), time, not leaving))
    return sorted(found, key=lambda knot: (-knot.time, knot.nodes))
