"""Graphs that fit."""

from __future__ import annotations

from stallscope.converters.graph.bounded import OTHERS, bounded, used, without_victims
from stallscope.converters.model.waits_for import THREAD, TIMER, Edge, Node, WaitGraph, waits_for
from wait_graphs import chained, profile_of


def star(size: int) -> WaitGraph:
    """Thread 7 waits for 1, 2, 3 … ns for others."""
    return waits_for(profile_of(*(chained(7, 7, i, (f"p-{100 + i}", 100 + i, "t")) for i in range(1, size + 1))))


def node(tid: int) -> Node:
    return Node(THREAD, tid, tid)


def test_what_fits_stays() -> None:
    graph = star(5)
    assert bounded(graph, 6, 5) == graph
    assert used(graph) == [node(7), *(node(100 + i) for i in range(1, 6))]


def test_rare_nodes_are_one_and_no_time_is_lost() -> None:
    graph = bounded(star(100), 3, 100)
    assert dict(graph.edges) == {
        (node(7), node(200)): Edge(100, 100),
        (node(7), node(199)): Edge(99, 99),
        (node(7), OTHERS): Edge(5050 - 199, 5050 - 199),
    }
    assert dict(graph.ends) == {pair: edge.waited for pair, edge in graph.edges.items()}
    assert graph.total == star(100).total
    assert graph.names[OTHERS] == ("[other]", "")
    assert len(graph.names) == 4


def test_rare_edges_go_to_others() -> None:
    graph = bounded(star(10), 100, 2)
    assert graph.edges[node(7), OTHERS] == Edge(55 - 19, 55 - 19)
    assert len(graph.edges) == 3
    assert graph.total == 55


def test_redistributed_time_counts_too() -> None:
    """A node that is waited for through others only is no rare one."""
    chain = chained(7, 7, 90, ("p-101", 101, "t"), ("p-102", 102, "t"))
    graph = bounded(waits_for(profile_of(chain, chained(7, 7, 5, ("p-103", 103, "t")))), 3, 10)
    assert set(graph.edges) == {(node(7), node(101)), (node(101), node(102)), (node(7), OTHERS)}


def test_who_only_ends_chains_is_no_rare_one() -> None:
    """Threads between are left out, with their edges."""
    chain = chained(7, 7, 90, ("app-7", 8, "io"), ("p-102", 102, "t"))
    graph = without_victims(waits_for(profile_of(chain)), {Node(THREAD, 7, 8)})
    graph.edges = {pair: edge for pair, edge in graph.edges.items() if node(102) not in pair}
    assert set(bounded(graph, 3, 10).ends) == {(node(7), node(102))}


def test_without_what_some_wait_for() -> None:
    graph = waits_for(profile_of(chained(7, 7, 5, ("[timer]", 0, "")), chained(7, 8, 6, ("app-7", 7, "t"))))
    left = without_victims(graph, {node(7)})
    assert dict(left.edges) == {(Node(THREAD, 7, 8), node(7)): Edge(6, 6)}
    assert dict(left.ends) == {(Node(THREAD, 7, 8), node(7)): 6}
    assert (node(7), Node(TIMER, name="[timer]")) in graph.edges
