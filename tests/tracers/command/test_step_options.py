from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.command.step_options import make_steps
from stallscope.tracers.measures.steps import Steps
from stallscope.tracers.measures.timeline import Timeline

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
}


def test_steps_need_a_timeline() -> None:
    steps, timeline = make_steps(GIVEN)
    assert isinstance(steps, Steps)
    assert isinstance(timeline, Timeline)
    assert steps.knobs()["record_call_spans"] == 1
    assert steps.sizes(0)["call_spans"] == 4 << 20
    assert [library.path for library in steps._wanted.libraries] == [str(LIBC.resolve()), "libtrain.so"]


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
    with pytest.raises(click.BadParameter, match="is a function of Python, at whose begin and end there is no probe"):
        make_steps({**GIVEN, "steps": ("train.py:train_step",)})


def test_intervals_have_no_steps() -> None:
    with pytest.raises(click.UsageError, match="leave out --every"):
        make_steps({**GIVEN, "every": 60.0})


def test_a_function_that_is_not_there() -> None:
    with pytest.raises(StallscopeError) as error:
        make_steps({**GIVEN, "steps": (f"{LIBC}:getenvv",)})
    assert "getenv" in error.value.remedy
    with pytest.raises(StallscopeError, match="there is no library"):
        make_steps({**GIVEN, "steps": ("/no/such.so:step",)})
