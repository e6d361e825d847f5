"""--step of trace-scan. With a real trace: tests/live/test_scan.py."""

from __future__ import annotations

import pytest
from stallscope.tracers.engines.protocol import Request
from stallscope.tracers.measures.oncpu import OnCpu
from stallscope.tracers.measures.protocol import find
from stallscope.tracers.measures.steps import PythonSteps, Steps
from stallscope.tracers.measures.timeline import Timeline
from stallscope.tracers.scan import main

PYTHON = ("--step", "train.py:train_step", "--vm-breakpoints")
NATIVE = ("--step", "libc.so.6:nanosleep")


def test_steps_of_python_beside_all_measures(recorded: list[Request]) -> None:
    main(["-p", "4711", *PYTHON])
    (request,) = recorded
    names = [each.name for each in request.measures]
    assert names == ["offcpu", "oncpu", "wakeup", "locks", "ioctl", "calls", "python_steps", "timeline"]
    assert find(request.measures, PythonSteps)
    assert find(request.measures, Timeline)
    running = find(request.measures, OnCpu)
    assert running
    assert running.one_by_one


def test_outputs_with_times_add_nothing_more(recorded: list[Request]) -> None:
    main(["-p", "4711", *PYTHON, "-o", "x.html"])
    assert [each.name for each in recorded[0].measures].count("timeline") == 1


def test_steps_of_a_library_take_the_probes_of_calls(
    recorded: list[Request], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-p", "4711", *NATIVE]) == 2
    assert "add --without calls" in capsys.readouterr().err
    main(["-p", "4711", *NATIVE, "--without", "calls"])
    assert find(recorded[0].measures, Steps)


@pytest.mark.parametrize("option", [("--watch", "10s"), ("--live",)])
def test_a_scan_that_goes_on_has_none(option: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-p", "4711", *PYTHON, *option]) == 2
    assert "--step tells of a whole" in capsys.readouterr().err
