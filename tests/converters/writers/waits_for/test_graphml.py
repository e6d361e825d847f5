"""GraphML that networkx reads again."""

from __future__ import annotations

import io

import networkx
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.waits_for import graphml
from wait_graphs import chained, profile_of


def test_comes_back() -> None:
    file = io.BytesIO()
    name = "x\x1b<&\u202e\ufffe\udcff\"'"
    graphml.write(
        profile_of(chained(7, 7, 5, (f"{name}-9", 10, name)), chained(7, 7, 2, ("[timer]", 0, ""))),
        file,
        WriteOptions(),
    )
    graph = networkx.parse_graphml(file.getvalue().decode())
    assert set(graph.nodes) == {"thread 7/7", "thread 9/10", "timer [timer]"}
    assert graph.edges["thread 7/7", "thread 9/10"] == {"waited_ns": 5, "passed_on_ns": 5}
    node = graph.nodes["thread 9/10"]
    assert node["process"] == "x\\x1b<&\\u202e\\ufffe\\xff\"'"
    assert (node["pid"], node["tid"], node["traced"], node["blocks_ns"]) == (9, 10, False, 5)
    assert graph.graph["blocked_ns"] == 7
