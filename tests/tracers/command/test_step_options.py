from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.command import step_options
from stallscope.tracers.command.step_options import make_steps
from stallscope.tracers.measures.span_options import SpanOptions
from stallscope.tracers.measures.steps import PythonSteps, Steps
from stallscope.tracers.measures.timeline import Timeline
from stallscope.tracers.probe_targets.python_steps import PythonFunction

LIBC = next(Path("/lib").glob("*-linux-gnu/libc.so.6"))
GIVEN: dict[str, Any] = {
    "steps": (f"{LIBC}:getenv", "libtrain.so:step"),
    "outputs": (),
    "timeline": False,
    "merge": False,
    "max_events": (1000, "first"),
    "event_mb": "16",
    "everything": False,
    "every": None,
    "python": "yes",
    "kernel_only": False,
    "vm_breakpoints": True,
}


def test_steps_need_a_timeline() -> None:
    steps, timeline = make_steps(GIVEN)
    assert isinstance(steps, Steps)
    assert isinstance(timeline, Timeline)
    assert steps.spans == SpanOptions(1000, "first", 0, 4 << 20)
    assert [library.path for library in steps.functions.libraries] == [str(LIBC.resolve()), "libtrain.so"]


def test_a_timeline_that_is_recorded_anyway_is_used() -> None:
    found = make_steps({**GIVEN, "outputs": ("x.pftrace",)})
    assert [measure.name for measure in found] == ["steps", "timeline"]


def test_without_steps_only_what_the_outputs_need() -> None:
    assert make_steps({**GIVEN, "steps": ()}) == ()
    (timeline,) = make_steps({**GIVEN, "steps": (), "outputs": ("x.pftrace",)})
    assert isinstance(timeline, Timeline)


@pytest.mark.parametrize("text", ["step", ":step", "libtrain.so:", ""])
def test_other_forms(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not FILE:FUNCTION"):
        make_steps({**GIVEN, "steps": (text,)})


def test_functions_of_python() -> None:
    python, timeline = make_steps({**GIVEN, "steps": ("train.py:train_step", "my.loop:Loop.step")})
    assert isinstance(python, PythonSteps)
    assert isinstance(timeline, Timeline)
    assert python.functions == [PythonFunction("train.py", "train_step"), PythonFunction("my/loop.py", "Loop.step")]
    both = make_steps({**GIVEN, "steps": ("train.py:train_step", "libtrain.so:step")})
    assert [measure.name for measure in both] == ["steps", "python_steps", "timeline"]


@pytest.mark.parametrize("less", [{"python": "no"}, {"kernel_only": True}])
def test_functions_of_python_need_its_stacks(less: dict[str, Any]) -> None:
    with pytest.raises(click.UsageError, match="leave out --no-python and -K"):
        make_steps({**GIVEN, **less, "steps": ("train.py:train_step",)})


@pytest.mark.parametrize("virtual", [True, False])
def test_a_program_on_a_virtual_machine_is_not_put_at_risk(virtual: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_options, "on_virtual_machine", lambda: virtual)
    python = {**GIVEN, "steps": ("train.py:train_step",), "vm_breakpoints": False}
    if virtual:
        with pytest.raises(StallscopeError, match="could end the program") as error:
            make_steps(python)
        assert "--vm-breakpoints" in error.value.remedy
    else:
        assert len(make_steps(python)) == 2
    assert len(make_steps({**python, "vm_breakpoints": True})) == 2
    assert len(make_steps({**python, "steps": ("libtrain.so:step",)})) == 2


def test_intervals_have_no_steps() -> None:
    with pytest.raises(click.UsageError, match="leave out --every"):
        make_steps({**GIVEN, "every": 60.0})


def test_a_function_that_is_not_there() -> None:
    with pytest.raises(StallscopeError) as error:
        make_steps({**GIVEN, "steps": (f"{LIBC}:getenvv",)})
    assert "getenv" in error.value.remedy
    with pytest.raises(StallscopeError, match="there is no library"):
        make_steps({**GIVEN, "steps": ("/no/such.so:step",)})
