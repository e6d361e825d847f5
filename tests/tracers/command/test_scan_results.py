from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from period_traces import TICK, Recording, loop, steady
from scans import scanned_host, three_troubles
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model.next_step import WHO_WAKES, NextStep, Whom
from stallscope.converters.model.scheduling import CallName, Scheduling
from stallscope.converters.readers import parallel
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.scan import folder
from stallscope.converters.scan.report import report_of
from stallscope.tracers.command.scan_results import ScanResults, needs_events, show, show_again

GIVEN: Mapping[str, Any] = {
    "outputs": (),
    "force": False,
    "per_thread": False,
    "as_json": False,
    "merge": False,
    "verbose": False,
    "mode": 0o600,
    "graph": None,
    "by": "process",
    "idle": False,
    "pids": (),
    "name": None,
    "everything": True,
    "command": (),
    "critical": None,
}


def plan(*outputs: Path | str, **given: object) -> ScanResults:
    return ScanResults.plan("scan", {**GIVEN, "outputs": tuple(map(str, outputs)), **given})


def test_folders_and_files_are_told_apart(tmp_path: Path) -> None:
    results = plan(tmp_path / "scan.d", tmp_path / "x.svg", tmp_path / "x.html")
    assert results.folders == (str(tmp_path / "scan.d"),)
    assert results.pages == (str(tmp_path / "x.html"),)
    assert results.paths == (str(tmp_path / "x.svg"),)
    assert plan().paths == ()


def test_all_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan(tmp_path / "scan.d", tmp_path / "x.svg").write(three_troubles())
    text = capsys.readouterr().out
    assert "Scanned 4 processes" in text
    assert f"wrote {tmp_path}/scan.d/\n" in text
    assert f"wrote {tmp_path}/x.svg\n" in text
    assert (tmp_path / "scan.d" / folder.CAPTURE).is_file()
    assert (tmp_path / "x.svg").read_text().startswith("<?xml")


def test_a_page_and_the_lanes_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, kept = tmp_path / "scan.html", tmp_path / "scan.d"
    plan(page, kept).write(scanned_host())
    assert f"wrote {page}\n" in capsys.readouterr().out
    assert 'id="lanesdata"' in page.read_text()
    assert page.stat().st_mode & 0o777 == 0o600
    assert (kept / folder.LANES).stat().st_size > 1_000
    again = tmp_path / "again.html"
    assert show_again(str(kept), {**GIVEN, "outputs": (str(again),)}) == 0
    assert 'id="lanesdata"' in again.read_text()


def test_a_page_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "scan.html").write_text("mine")
    with pytest.raises(StallscopeError, match="exists"):
        plan(tmp_path / "scan.html")
    plan(tmp_path / "scan.html", force=True).write(three_troubles())
    assert (tmp_path / "scan.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("path", "needs"), [("a.html", True), ("a.d", True), ("a.pftrace", True), ("a.svg", False), ("a.pb.gz", False)]
)
def test_outputs_that_are_made_of_events(path: str, needs: bool) -> None:
    assert needs_events(path) is needs


def test_json_alone_is_on_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan(tmp_path / "scan.d", as_json=True).write(three_troubles())
    text = capsys.readouterr()
    assert json.loads(text.out)["scan_version"] == 1
    assert "wrote" in text.err


def test_what_is_recommended_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step = NextStep("trace-offcpu", Whom(("-a",)), ("-d", "2"), WHO_WAKES)
    plan(tmp_path / "scan.d").write(three_troubles(), step=step)
    (said,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Next: ")]
    assert "trace-offcpu" in said
    assert show_again(str(tmp_path / "scan.d"), GIVEN) == 0
    assert said in capsys.readouterr().out.splitlines()


def test_a_report_for_a_program() -> None:
    stream = io.StringIO()
    show(report_of(three_troubles()), stream, as_json=True)
    parts = {"processes", "jobs", "gpus", "steps", "teams", "pools", "findings", "concerned", "host", "nvml", "cost"}
    assert {"scan_version", "summary", "shed", *parts} == set(json.loads(stream.getvalue()))


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(StallscopeError, match="no folder of a scan"):
        show_again(str(tmp_path), GIVEN)


def steps_told(path: Path, events: Scheduling) -> list[Any]:
    """Steps of a scan with these events, as its folder has them; they are in its capture, too."""
    profile = three_troubles()
    profile.scheduling = events
    plan(path).write(profile)
    told: list[Any] = json.loads((path / folder.SUMMARY).read_text())["steps"]
    again = io.StringIO()
    ((_, kept),) = parallel.read_all([folder.capture_of(str(path))], ReadOptions(), "", jobs=1)
    show(report_of(kept), again, as_json=True)
    assert json.loads(again.getvalue())["steps"] == told
    return told


def test_steps_are_looked_for_in_the_events(tmp_path: Path) -> None:
    events = Recording().thread(5, loop(steady(30))).events()
    (made,) = steps_told(tmp_path / "a.d", events)
    assert made["paces"][0]["found"]["intervals"] == 30
    assert steps_told(tmp_path / "b.d", Recording().thread(5, loop(steady(30), TICK, work=0.1)).events()) == []


def test_where_the_user_named_steps_none_are_looked_for(tmp_path: Path) -> None:
    events = replace(Recording().thread(5, loop(steady(30))).events(), call_names=[CallName("f", "step")])
    assert steps_told(tmp_path / "a.d", events) == []
