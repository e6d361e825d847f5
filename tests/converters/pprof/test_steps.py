"""Steps in a saved profile."""

from __future__ import annotations

import io
import json
from dataclasses import asdict, replace
from typing import Any

import pytest
from stallscope.converters import pprof
from stallscope.converters.model import Profile, ValueType
from stallscope.converters.model.sites import Site
from stallscope.converters.model.steps import Found, Maker, Reader, SlowSteps, Spent, StepRun, Steps
from stallscope.converters.pprof.steps import decoded, decoded_found, encoded
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


def with_evidence() -> Steps:
    makers = Maker("loader\udcff", 5, "worker", 8, 100), Maker("loader", 6, "worker", 9, 50)
    found = Found(Site(("main", "next_batch\x1b"), "futex_wait"), 3, 40, True)
    return replace(made(), name="", found=found, reader=Reader(makers, 3, 320))


def test_steps_that_nobody_named_survive() -> None:
    steps = [with_evidence(), replace(with_evidence(), reader=None)]
    file = io.BytesIO()
    pprof.save(Profile([ValueType("blocked", "nanoseconds")], found_steps=steps), file)
    file.seek(0)
    loaded = pprof.load(file)
    assert (loaded.found_steps, loaded.steps) == (steps, [])
    assert loaded.found_steps[0].title == "main → next_batch\x1b"


@pytest.mark.parametrize(
    "changed",
    [
        {"found": None},
        {"found": {"place": [["x"], ""], "deviation": 1, "waited": 1}},
        {"found": {"place": [["x"], ""], "deviation": -1, "waited": 1, "is_timed": False}},
        {"found": {"place": [["x"], ""], "deviation": 1, "waited": 1, "is_timed": 1}},
        {"found": {"place": ["x"], "deviation": 1, "waited": 1, "is_timed": False}},
        {"reader": {"makers": [], "number": 1, "wall": 1}},
        {"reader": {"makers": [["a", 1, "b", 2]], "number": 1, "wall": 1}},
        {"reader": {"makers": [["a", 1, "b", 2, -1]], "number": 1, "wall": 1}},
        {"reader": {"makers": [["a", 1, 5, 2, 1]], "number": 1, "wall": 1}},
        {"reader": "x"},
        {"p90": -1},
        {"median": 0},
        {"steps": asdict(Spent(0, 0, 0, 0))},
    ],
)
def test_evidence_that_others_have_changed_is_refused(changed: dict[str, Any]) -> None:
    entry = json.loads(json.dumps(encoded(with_evidence())))
    assert decoded_found(entry) == with_evidence()
    with pytest.raises(ValueError, match=r"steps|makers"):
        decoded_found({**entry, **changed})


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


def test_files_of_before_have_no_slow_steps_no_percentile_and_no_samples() -> None:
    entry = encoded(made())
    for name in ("slow", "p90", "found", "reader"):
        del entry[name]
    for part in ("samples", "ran"):
        del entry["steps"][part]
    assert decoded(entry) == replace(made(), p90=None)
