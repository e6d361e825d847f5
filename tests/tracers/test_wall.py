"""trace-wall's options. With a real trace: tests/live/test_wall.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.engines.ebpf.engine import Ebpf
from stallscope.tracers.engines.protocol import Request
from stallscope.tracers.measures.protocol import columns_of
from stallscope.tracers.wall import main


def test_both_measures_share_the_column_of_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[Request] = []

    def trace(_: Ebpf, request: Request) -> None:
        seen.append(request)
        raise StallscopeError("recorded")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Ebpf, "trace", trace)
    assert main(["-p", "4711", "-F", "50"]) == 1
    (request,) = seen
    assert request.what == "Wall-clock time"
    assert [column.name for column in columns_of(request.measures)] == ["wall", "count", "min", "max", "samples"]
    assert [measure.name for measure in request.measures] == ["offcpu", "oncpu"]


def test_waits_are_not_filtered(capsys: pytest.CaptureFixture[str]) -> None:
    """The parts would no longer sum to the whole."""
    assert main(["-p", "1", "--min-block", "5"]) == 2
    assert "trace-wall: " in capsys.readouterr().err


def test_a_timeline_comes_with_its_output(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[Request] = []

    def trace(_: Ebpf, request: Request) -> None:
        seen.append(request)
        raise StallscopeError("recorded")

    monkeypatch.setattr(Ebpf, "trace", trace)
    main(["-p", "4711", "-o", str(tmp_path / "x.pftrace")])
    assert [measure.name for measure in seen[0].measures] == ["offcpu", "oncpu", "timeline"]
    assert [column.name for column in columns_of(seen[0].measures)] == ["wall", "count", "min", "max", "samples"]
