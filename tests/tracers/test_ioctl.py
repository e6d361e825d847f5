"""trace-ioctl's options. With real calls: tests/live/test_ioctl.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from stallscope.tracers.engines.protocol import Request
from stallscope.tracers.ioctl import main
from stallscope.tracers.measures.ioctl import Ioctl
from stallscope.tracers.measures.span_options import SpanOptions


def test_defaults(recorded: list[Request]) -> None:
    assert main(["-p", "4711"]) == 1
    (request,) = recorded
    (measure,) = request.measures
    assert (measure.name, request.what) == ("ioctl", "Time in ioctl calls")
    assert [(column.name, column.unit) for column in measure.columns] == [("ioctl", "nanoseconds"), ("calls", "count")]
    assert measure == Ioctl()


@pytest.mark.parametrize("arguments", [[], ["-p", "1", "--state", "S"], ["-p", "1", "-F", "99"], ["-a", "-p", "1"]])
def test_wrong_usage(arguments: list[str], recorded: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("trace-ioctl: ")
    assert recorded == []


def test_help_begins_with_three_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert capsys.readouterr().out.count("sudo trace-ioctl ") == 3


def test_a_timeline_that_nothing_shows_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-p", "1", "--timeline", "-o", "x.svg"]) == 2
    assert "--timeline shows in no output" in capsys.readouterr().err


def test_a_timeline_has_its_spans(recorded: list[Request], tmp_path: Path) -> None:
    main(["-p", "1", "--span-over", "10us", "--max-events", "7,first", "-o", str(tmp_path / "x.pftrace")])
    calls, timeline = recorded[0].measures
    assert timeline.name == "timeline"
    assert isinstance(calls, Ioctl)
    assert calls.spans == SpanOptions(7, "first", 10_000, 16 << 20)


@pytest.mark.parametrize("over", ["10", "us", "-1us", "1e3us", "10 us", "1h"])
def test_lengths_that_are_none(over: str, recorded: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-p", "1", "--span-over", over, "-o", "x.pftrace"]) == 2
    assert "is not a time such as 10us or 1ms" in capsys.readouterr().err
    assert recorded == []
