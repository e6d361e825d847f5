"""The wait-for graph as a graph of networkx."""

from __future__ import annotations

from typing import Any

from .graph import Picture


def network(made: Picture) -> Any:
    """A ``networkx.DiGraph``; the attributes of nodes and edges are texts, numbers and truth values."""
    import networkx

    graph = networkx.DiGraph(
        title=made.title, by=made.by, blocked_ns=made.total, idle_ns=made.idle, lost=sum(made.lost.values())
    )
    for point in made.points:
        told = point._asdict()
        told["blocked_ns"], told["blocks_ns"] = told.pop("waits"), told.pop("blocks")
        graph.add_node(told.pop("id"), **told)
    for arrow in made.arrows:
        graph.add_edge(arrow.source, arrow.target, waited_ns=arrow.waited, passed_on_ns=arrow.passed_on)
    return graph
