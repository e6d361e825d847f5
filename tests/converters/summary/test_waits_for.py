"""Blocking for the tables."""

from __future__ import annotations

import json

from stallscope.converters.model.waits_for import THREAD, Node, waits_for
from stallscope.converters.summary.waits_for import Blocking, blocking_of
from wait_graphs import chained, profile_of


def blocking(*, idle: bool = False) -> Blocking:
    graph = waits_for(
        profile_of(
            chained(7, 7, 40, ("disk-9", 10, "r"), ("[timer]", 0, "")),
            chained(9, 10, 25, ("app-7", 7, "a")),
            chained(9, 11, 35, ("[timer]", 0, "")),
        )
    )
    return blocking_of(graph, {Node(THREAD, 9, 11)} if idle else set())


def test_processes() -> None:
    found = blocking()
    assert (found.by, found.total, found.idle) == ("process", 100, 0)
    assert [(node.process, node.waits, node.blocks) for node in found.nodes] == [
        ("disk", 60, 40),
        ("app", 40, 25),
        ("[timer]", 0, 35),
    ]
    assert found.blocked_by(0) == [(2, 35), (1, 25)]
    assert found.blocks(0) == [(1, 40)]
    assert sum(found.ends.values()) == found.total


def test_without_idle_threads() -> None:
    found = blocking(idle=True)
    assert (found.total, found.idle) == (65, 35)
    assert [node.process for node in found.nodes] == ["app", "disk"]


def test_threads_of_a_single_process() -> None:
    found = blocking_of(waits_for(profile_of(chained(7, 7, 40, ("app-7", 8, "w")))), set())
    assert found.by == "thread"
    assert [(node.thread, node.tid, node.traced) for node in found.nodes] == [("t7", 7, True), ("w", 8, False)]


def two_and_another(first: int, second: int, third: int) -> Blocking:
    """Two that wait for each other, and one that waits for one of them."""
    knot = chained(7, 7, first, ("disk-9", 9, "r")), chained(9, 9, second, ("app-7", 7, "a"))
    return blocking_of(waits_for(profile_of(*knot, chained(8, 8, third, ("app-7", 7, "a")))), set())


def test_knots_and_json() -> None:
    samples = [
        chained(7, 7, 40, ("disk-9", 9, "r")),
        chained(9, 9, 25, ("app-7", 7, "a")),
        chained(8, 8, 35, ("a-7", 7, "a")),
    ]
    found = blocking_of(waits_for(profile_of(*samples)), set())
    (knot,) = found.knots
    assert [member.process for member in knot.members] == ["app", "disk"]
    assert (knot.number, knot.time, knot.share, knot.closed) == (2, 65, 0.65, True)
    data = json.loads(json.dumps(found.to_json()))
    assert data["blocked_ns"] == 100
    assert data["knots"][0]["share"] == 0.65
    assert data["ends"][0] == {"from": 0, "to": 1, "time_ns": 40}
    assert data["nodes"][0]["process"] == "app"


def test_a_knot_of_little_time_is_not_told() -> None:
    samples = [
        chained(7, 7, 3, ("disk-9", 9, "r")),
        chained(9, 9, 1, ("app-7", 7, "a")),
        chained(8, 8, 96, ("a-7", 7, "a")),
    ]
    assert blocking_of(waits_for(profile_of(*samples)), set()).knots == ()
