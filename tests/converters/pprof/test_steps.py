"""Steps in a saved profile."""

from __future__ import annotations

import io
from dataclasses import asdict, replace
from typing import Any

import pytest
from stallscope.converters import pprof
from stallscope.converters.model import Profile, ValueType
from stallscope.converters.model.steps import SlowSteps, Spent, StepRun, Steps
from stallscope.converters.pprof.steps import decoded, encoded
from stallscope.converters.summary.steps import steps_of
from step_traces import LOOP, recorded


def made(**changes: Any) -> Steps:
    (found,) = steps_of(recorded([*LOOP, (550, -1)], **changes))
    return found


def with_samples() -> Steps:
    steps = made()
    runs = StepRun(("step", "\udcff"), 4), StepRun((), 1)
    return replace(steps, steps=replace(steps.steps, samples=6, ran=runs))


def with_slow(every: int | None) -> Steps:
    steps = made()
    return replace(steps, slow=SlowSteps(steps.steps, steps.between, 4, every))


def test_steps_survive() -> None:
    steps = [made(), made(names=["\x1b[2J", "[red]\udcff"]), with_slow(None), with_slow(20), with_samples()]
    file = io.BytesIO()
    pprof.save(Profile([ValueType("blocked", "nanoseconds")], steps=steps), file)
    file.seek(0)
    assert pprof.load(file).steps == steps


@pytest.mark.parametrize(
    "changed",
    [
        {"name": 5},
        {"tid": -1},
        {"tid": True},
        {"max": 1 << 63},
        {"median": 1.5},
        {"more": 1},
        {"steps": None},
        {"steps": {"count": 1}},
        {"steps": {"count": 1, "wall": 5, "on_cpu": 3, "blocked": 3, "waits": []}},
        {"between": {"count": 1, "wall": 5, "on_cpu": 3, "blocked": 2, "waits": [[["x"], 1]]}},
        {"between": {"count": 1, "wall": 5, "on_cpu": 3, "blocked": 2, "waits": [[["x", "y"], 1, 1]]}},
        {"steps": {**asdict(with_samples().steps), "samples": 4}},
        {"steps": {**asdict(with_samples().steps), "ran": [[["x"], -1]]}},
        {"steps": {**asdict(with_samples().steps), "ran": [[["x"], 1, 1]]}},
        {"steps": {**asdict(with_samples().steps), "ran": [[[1], 1]]}},
        {"slow": "x"},
        {"slow": {**asdict(with_slow(5)), "every": "x"}},
        {"slow": {**asdict(with_slow(5)), "others": asdict(Spent(0, 0, 0, 0))}},
        {"slowest": "x"},
        {"slowest": [[1, 2, 3]]},
        {"slowest": [[1, 2, 3, {}]]},
    ],
)
def test_what_others_have_changed_is_refused(changed: dict[str, Any]) -> None:
    entry = encoded(made())
    assert decoded(entry) == made()
    with pytest.raises(ValueError, match="steps"):
        decoded({**entry, **changed})


def test_files_of_before_have_no_slow_steps_and_no_samples() -> None:
    entry = encoded(made())
    del entry["slow"]
    for part in ("samples", "ran"):
        del entry["steps"][part]
    assert decoded(entry) == made()
