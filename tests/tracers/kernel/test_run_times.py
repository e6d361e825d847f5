from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from stallscope.tracers.kernel import run_times
from stallscope.tracers.kernel.run_times import Runs, RunTimes


def test_runs_since() -> None:
    assert Runs(10, 3).since(Runs(4, 1)) == Runs(6, 2)


def test_fields_of_a_descriptor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "pos:\t0\nprog_type:\t26\nrun_time_ns:\t1234\nrun_cnt:\t5\nrecursion_misses:\t7\nverified_insns:\t9\n"
    (tmp_path / "3").write_text(text)
    (tmp_path / "4").write_text("pos:\t0\n")
    monkeypatch.setattr(run_times, "Path", lambda name: tmp_path / name.rpartition("/")[2])
    programs: Any = [
        SimpleNamespace(name="a", fd=3, is_loaded=True),
        SimpleNamespace(name="b", fd=4, is_loaded=True),
        SimpleNamespace(name="c", fd=-2, is_loaded=False),
    ]
    assert RunTimes(programs).read() == {"a": Runs(1234, 5), "b": Runs(0, 0)}


def test_it_is_asked_for_once_and_ended_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, bytes]] = []
    closed: list[int] = []
    monkeypatch.setattr(run_times, "bpf", lambda command, head: asked.append((command, head)) or 77)
    monkeypatch.setattr(run_times.os, "close", closed.append)
    times = RunTimes([])
    times.end()
    times.begin()
    times.begin()
    times.end()
    times.end()
    assert (asked, closed) == ([(32, bytes(4))], [77])
