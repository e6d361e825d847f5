"""trace-oncpu's options. With real samples: tests/live/test_oncpu.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from stallscope.tracers.engines.protocol import Request
from stallscope.tracers.oncpu import main


def test_defaults(recorded: list[Request]) -> None:
    assert main(["-p", "4711"]) == 1
    (request,) = recorded
    (measure,) = request.measures
    assert request.what == "On-CPU time"
    assert [(column.name, column.unit) for column in measure.columns] == [
        ("on-cpu", "nanoseconds"),
        ("samples", "count"),
    ]
    assert measure.frequency == 99  # type: ignore[attr-defined]


def test_an_event_is_what_is_counted(recorded: list[Request]) -> None:
    main(["-a", "-F", "4999", "--event", "cycles"])
    (request,) = recorded
    (measure,) = request.measures
    assert request.what == "cycles on the CPU"
    assert measure.columns[0] == ("cycles", "count", "sum")
    assert measure.frequency == 4999  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "arguments", [["-F", "0"], ["-F", "10001"], ["-F", "x"], ["--event", "time"], ["--state", "S"]]
)
def test_wrong_usage(arguments: list[str], recorded: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-p", "1", *arguments]) == 2
    assert capsys.readouterr().err.startswith("trace-oncpu: ")
    assert recorded == []


def test_help_begins_with_three_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("sudo trace-oncpu ") == 3


def test_a_timeline_is_refused_before_the_trace(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["-p", "1", "-o", str(tmp_path / "x.pftrace")]) == 2
    cause, remedy = capsys.readouterr().err.splitlines()
    assert cause == "trace-oncpu: a .pftrace is made of the scheduler's events, which trace-oncpu does not record"
    assert "trace-wall -o x.pftrace" in remedy
    assert list(tmp_path.iterdir()) == []
