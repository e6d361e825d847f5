from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from scans import scanned_host
from stallscope.converters.writers import output
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.tracers.scan import main


def capture(folder: Path, name: str) -> str:
    path = folder / name
    output.write(scanned_host(events=False), path, WriteOptions())
    return str(path)


def test_captures_without_slices_are_not_judged(tmp_path: Path) -> None:
    one, other = capture(tmp_path, "a.pb.gz"), capture(tmp_path, "b.pb.gz")
    ran = CliRunner().invoke(main, ["--compare", one, other])
    assert ran.exit_code == 0, ran.output
    assert ran.output.startswith("There is nothing to compare: what is before has no slices of time")
    made = json.loads(CliRunner().invoke(main, ["--compare", one, other, "--json"]).output)
    assert (made["compare_version"], made["judged"], made["functions"], made["calls"]) == (2, False, [], [])


def test_pages_and_graphs(tmp_path: Path) -> None:
    one, page, graph = capture(tmp_path, "a.pb.gz"), tmp_path / "x.html", tmp_path / "x.folded"
    arguments = ["--compare", one, one, "-o", str(page), "-o", str(graph)]
    ran = CliRunner().invoke(main, arguments)
    assert ran.exit_code == 0, ran.output
    assert ran.output.count("wrote ") == 2
    assert "Comparison of two runs" in page.read_text()
    assert all(line.rpartition(" ")[2].isdigit() for line in graph.read_text().splitlines() if line[0] != "#")
    assert CliRunner().invoke(main, arguments).exit_code != 0, "they exist"
    assert CliRunner().invoke(main, [*arguments, "--force"]).exit_code == 0


def test_lists_of_runs(tmp_path: Path) -> None:
    """Takes repeated pairs, too, and names that have a comma themselves."""
    a, b, c, d = (capture(tmp_path, f"{name}.pb.gz") for name in ("a", "b", "c", "d,1"))
    for arguments, runs in (
        ([f"{a},{b},{c}", d], [3, 1]),
        ([f"{a},{b}", c, "--compare", d, a], [3, 2]),
        ([a, f"{a},{b}"], [1, 2]),
    ):
        ran = CliRunner().invoke(main, ["--compare", *arguments, "--json"])
        assert ran.exit_code == 0, ran.output
        assert json.loads(ran.output)["runs"] == runs


def test_wrong_lists(tmp_path: Path) -> None:
    """A run that is given twice would count as two that agree."""
    a, b = capture(tmp_path, "a.pb.gz"), capture(tmp_path, "b.pb.gz")
    (tmp_path / "link.pb.gz").symlink_to(a)
    for one, told in (
        (f"{a},{b},{a}", "given twice"),
        (f"{a},", "an empty name"),
        (f"{a},{tmp_path}/link.pb.gz", "twice"),
    ):
        ran = CliRunner().invoke(main, ["--compare", one, b])
        assert ran.exit_code == 2
        assert told in ran.output


@pytest.mark.parametrize("more", [["--from", "x.d"]])
def test_what_it_does_not_do(tmp_path: Path, more: list[str]) -> None:
    one = capture(tmp_path, "a.pb.gz")
    ran = CliRunner().invoke(main, ["--compare", one, one, *more])
    assert ran.exit_code == 2
