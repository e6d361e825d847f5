"""JSON that networkx reads again."""

from __future__ import annotations

import io
import json

import networkx
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.waits_for import json as writer
from wait_graphs import chained, profile_of


def test_comes_back() -> None:
    profile = profile_of(chained(7, 7, 5, ("\udcff\x1b-9", 10, "r"), ("[timer]", 0, "")))
    profile.lost = {"wake-ups": 3}
    file = io.BytesIO()
    writer.write(profile, file, WriteOptions())
    data = json.loads(file.getvalue())
    assert data["graph"]["lost"] == {"wake-ups": 3}
    graph = networkx.node_link_graph(data, edges="links")
    assert graph.edges["thread 7/7", "thread 9/10"] == {"waited_ns": 5, "passed_on_ns": 0}
    assert graph.edges["thread 9/10", "timer [timer]"] == {"waited_ns": 0, "passed_on_ns": 5}
    assert graph.nodes["thread 9/10"]["process"] == "\\xff\\x1b"
    assert [link["source"] for link in data["links"]] == ["thread 7/7", "thread 9/10"]
