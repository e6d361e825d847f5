"""Option --collectives of trace-wall and trace-scan. With real calls: tests/live/test_collectives.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from stallscope.tracers.engines.protocol import Request
from stallscope.tracers.measures.argument_options import ArgumentOptions
from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.measures.oncpu import OnCpu
from stallscope.tracers.measures.protocol import find
from stallscope.tracers.measures.timeline import Timeline
from stallscope.tracers.probe_targets.collectives import Collectives, WithCuda
from stallscope.tracers.scan import main as scan
from stallscope.tracers.wall import main as wall

Main = Callable[[list[str]], int]


@pytest.mark.parametrize(("main", "wanted"), [(wall, Collectives()), (scan, WithCuda())])
def test_calls_and_events_are_measured(main: Main, wanted: Collectives, recorded: list[Request]) -> None:
    main(["-p", "4711", "--collectives"])
    (request,) = recorded
    calls = [each for each in request.measures if isinstance(each, Calls)]
    assert [(each.wanted, each.arguments) for each in calls] == [(wanted, ArgumentOptions())]
    assert sum(isinstance(each, Timeline) for each in request.measures) == 1
    samples = find(request.measures, OnCpu)
    assert samples and samples.one_by_one, "what a rank runs before it comes"


def test_without_cuda_and_with_a_timeline(recorded: list[Request], tmp_path: Path) -> None:
    scan(["-p", "4711", "--collectives", "--without", "calls", "-o", str(tmp_path / "x.html")])
    calls = find(recorded[0].measures, Calls)
    assert calls and calls.wanted == Collectives()
    assert sum(isinstance(each, Timeline) for each in recorded[0].measures) == 1


@pytest.mark.parametrize("main", [wall, scan])
def test_without_the_option(main: Main, recorded: list[Request]) -> None:
    main(["-p", "4711"])
    calls = find(recorded[0].measures, Calls)
    assert calls is None or calls.arguments is None


@pytest.mark.parametrize(("main", "more"), [(wall, ["--every", "1"]), (scan, ["--watch", "10s"])])
def test_not_in_intervals(main: Main, more: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["-p", "1", "--collectives", *more, "-o", str(tmp_path / "%s.pb.gz")]) == 2
    assert "--collectives tells of a whole trace" in capsys.readouterr().err
