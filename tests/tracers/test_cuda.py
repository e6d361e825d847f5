"""trace-cuda's options. With real calls: tests/live/test_cuda.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from stallscope.tracers.cuda import main
from stallscope.tracers.engines.protocol import Request
from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.measures.ioctl import Ioctl
from stallscope.tracers.measures.span_options import SpanOptions
from stallscope.tracers.measures.timeline import LIMIT


def test_defaults(recorded: list[Request]) -> None:
    assert main(["-p", "4711"]) == 1
    (request,) = recorded
    ioctls, measure = request.measures
    assert (ioctls.name, ioctls.columns) == ("ioctl", measure.columns)
    assert (measure.name, request.what) == ("calls", "Time in calls")
    assert [(column.name, column.unit) for column in measure.columns] == [("calls", "nanoseconds"), ("calls", "count")]
    assert (ioctls, measure) == (Ioctl(alone=False), Calls())


@pytest.mark.parametrize(
    "arguments",
    [[], ["-p", "1", "--state", "S"], ["-p", "1", "-F", "99"], ["-a", "-p", "1"], ["-p", "1", "--sym", "x"]],
)
def test_wrong_usage(arguments: list[str], recorded: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("trace-cuda: ")
    assert recorded == []


def test_help_begins_with_three_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert capsys.readouterr().out.count("sudo trace-cuda ") == 3


def test_a_timeline_that_nothing_shows_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-p", "1", "--timeline", "-o", "x.svg"]) == 2
    assert "--timeline shows in no output" in capsys.readouterr().err


def test_a_timeline_has_the_calls(recorded: list[Request], tmp_path: Path) -> None:
    main(["-p", "1", "--span-over", "2ms", "-o", str(tmp_path / "x.pftrace")])
    _, calls, timeline = recorded[0].measures
    assert timeline.name == "timeline"
    assert calls == Calls(spans=SpanOptions(LIMIT, "newest", 2_000_000, 16 << 20))
