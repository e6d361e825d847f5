"""Options of the wait-for graph, with trace-convert."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from stallscope.converters import convert
from stallscope.converters.base import helpers
from stallscope.converters.writers import output
from wait_graphs import chained, profile_of


@pytest.fixture
def saved(tmp_path: Path) -> str:
    """A profile of two processes."""
    profile = profile_of(chained(7, 8, 5, ("disk-9", 10, "r")), chained(9, 10, 6, ("[timer]", 0, "")))
    output.write(profile, tmp_path / "x.pb.gz")
    return str(tmp_path / "x.pb.gz")


def test_from_a_saved_profile(saved: str, tmp_path: Path) -> None:
    graph = tmp_path / "x.graph.json"
    done = CliRunner().invoke(convert.main, ["--by", "process", "--graph", str(graph), saved])
    assert done.exit_code == 0, done.output
    data = json.loads(graph.read_text())
    assert {node["id"] for node in data["nodes"]} == {"process 7", "process 9", "timer [timer]"}
    assert not done.stdout


def test_as_an_output(saved: str, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("x.dot", "x.graphml", "y.graph.json")]
    outputs = [argument for path in paths for argument in ("-o", str(path))]
    done = CliRunner().invoke(convert.main, [*outputs, saved])
    assert done.exit_code == 0, done.output
    assert [path.stat().st_size > 100 for path in paths] == [True] * 3
    assert '"thread 7/8"' in paths[0].read_text()


@pytest.mark.parametrize(
    ("path", "cause"),
    [("x.folded", "is no wait-for graph"), ("x.txt", "stands for no format"), ("x.svg", "which is not installed")],
)
def test_what_cannot_be_written(
    saved: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, cause: str
) -> None:
    monkeypatch.setattr(helpers, "FOLDERS", (str(tmp_path),))
    done = CliRunner().invoke(convert.main, ["--graph", str(tmp_path / path), saved])
    assert done.exit_code
    assert cause in str(done.exception)
    assert not (tmp_path / path).exists()


def test_an_existing_graph_stays(saved: str, tmp_path: Path) -> None:
    (tmp_path / "x.dot").write_text("mine")
    done = CliRunner().invoke(convert.main, ["--graph", str(tmp_path / "x.dot"), saved])
    assert done.exit_code
    assert (tmp_path / "x.dot").read_text() == "mine"
    done = CliRunner().invoke(convert.main, ["--force", "--graph", str(tmp_path / "x.dot"), saved])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "x.dot").read_text() != "mine"
