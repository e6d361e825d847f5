"""Threads that wait for each other."""

from __future__ import annotations

from stallscope.converters.graph.knots import knots
from stallscope.converters.model.waits_for import THREAD, Node, waits_for
from wait_graphs import chained, profile_of

A, B, C = (Node(THREAD, tid, tid) for tid in (101, 102, 103))


def test_two_that_wait_for_each_other_and_one_that_waits_for_them() -> None:
    graph = waits_for(
        profile_of(
            chained(101, 101, 40, ("p-102", 102, "b")),
            chained(102, 102, 30, ("p-101", 101, "a")),
            chained(103, 103, 30, ("p-101", 101, "a")),
        )
    )
    ((nodes, time, closed),) = knots(graph)
    assert (nodes, time, closed) == ((A, B), 70, True)


def test_a_knot_with_a_way_out_is_not_closed() -> None:
    graph = waits_for(
        profile_of(
            chained(101, 101, 40, ("p-102", 102, "b")),
            chained(102, 102, 30, ("p-101", 101, "a")),
            chained(102, 102, 30, ("[timer]", 0, "")),
        )
    )
    (knot,) = knots(graph)
    assert (knot.nodes, knot.time, knot.closed) == ((A, B), 70, False)


def test_what_happens_rarely_ties_no_knot() -> None:
    samples = [chained(101, 101, 1000, ("p-102", 102, "b")), chained(102, 102, 10, ("p-101", 101, "a"))]
    assert knots(waits_for(profile_of(*samples))) == []
    samples[1] = chained(102, 102, 11, ("p-101", 101, "a"))
    assert len(knots(waits_for(profile_of(*samples)))) == 1


def test_a_longer_circle() -> None:
    ring = [chained(101 + i, 101 + i, 10, (f"p-{101 + (i + 1) % 3}", 101 + (i + 1) % 3, "t")) for i in range(3)]
    assert [knot.nodes for knot in knots(waits_for(profile_of(*ring)))] == [(A, B, C)]
    assert knots(waits_for(profile_of(*ring[:2]))) == []
