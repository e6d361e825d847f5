"""The graph as networkx has it."""

from __future__ import annotations

from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.waits_for.graph import picture
from stallscope.converters.writers.waits_for.networks import network
from wait_graphs import chained, profile_of


def test_attributes() -> None:
    profile = profile_of(chained(7, 7, 5, ("disk-9", 10, "r")))
    profile.lost = {"wake-ups": 3, "stacks": 1}
    graph = network(picture(profile, WriteOptions(title="x")))
    assert graph.graph == {"title": "x", "by": "thread", "blocked_ns": 5, "idle_ns": 0, "lost": 4}
    assert graph.nodes["thread 7/7"] == {
        "kind": "thread", "name": "app-7", "process": "app", "thread": "t7", "pid": 7, "tid": 7, "traced": True,
        "idle": False, "knot": 0, "blocked_ns": 5, "blocks_ns": 0,
    }  # fmt: skip
