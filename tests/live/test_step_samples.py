"""Samples in steps, one by one, against a program that knows how long each of its functions ran."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import run
from runner import FOLDER, SYSTEM_PYTHON
from stallscope.converters.summary.steps import steps_of
from stallscope.tracers.engines.ebpf.measures.steps import StepsCollector
from stallscope.tracers.measures import steps as measure
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu
from stallscope.tracers.measures.span_options import SpanOptions
from stallscope.tracers.measures.timeline import Timeline
from stallscope.tracers.probe_targets.steps import StepFunction, StepFunctions
from stallscope.tracers.probe_targets.wanted import Library
from tracing import SURVIVES, Trace

pytestmark = pytest.mark.usefixtures("live")

FREQUENCY = 999
WALL = str(Path(sys.executable).with_name("trace-wall"))
PROGRAM = f"""
{SURVIVES}
import json, sys, time

SOURCE = '''
def %s(ns):
    begin = now = time.thread_time_ns()
    while now < begin + ns:
        for _ in range(3000): pass
        now = time.thread_time_ns()
    return now - begin
'''
exec(compile(SOURCE % "usual", "usual.py", "exec"))
exec(compile(SOURCE % "save", "save.py", "exec"))

def step(number):
    return usual(2_000_000), save(40_000_000) if number % 20 == 19 else 0

ran = []
for number in range(600):
    ran.append(step(number))
    time.sleep(0.001)
json.dump(ran, open(sys.argv[1], "w"))
"""


def test_each_sample_is_recorded_that_is_counted(trace: Trace) -> None:
    functions = StepFunctions.of([StepFunction(Library.at(str(FOLDER / "steps")), "train_step")])
    steps = StepsCollector(measure.Steps(functions, SpanOptions(1 << 16)))
    running = OnCpu(FREQUENCY, one_by_one=True)
    traced = trace("steps", 60, measures=(OffCpu(), running, steps, Timeline()))
    profile, scheduling = traced.profile, traced.profile.scheduling
    assert scheduling
    column = profile.index("samples")
    assert len(scheduling.samples) == sum(sample.values[column] for sample in profile.samples) > 60
    (found,) = steps_of(scheduling)
    assert 0 < found.steps.samples <= len(scheduling.samples)
    most = found.steps.ran[0]
    assert "compute" in most.frames
    # Of 2 ms in a step, nearly all is in that function.
    in_it = sum(each.samples for each in found.steps.ran if "compute" in each.frames)
    assert in_it >= 0.9 * found.steps.samples


def test_without_steps_they_are_not(trace: Trace) -> None:
    traced = trace("steps", 20, measures=(OffCpu(), OnCpu(FREQUENCY), Timeline()))
    assert traced.profile.scheduling
    assert len(traced.profile.scheduling.samples) == 0


def of_function(ran: list[dict[str, Any]], function: str) -> int:
    """Samples in a Python function, and in what it calls."""
    return sum(each["samples"] for each in ran if any(frame.endswith(f" {function}") for frame in each["frames"]))


def test_what_runs_in_slow_steps(tmp_path: Path) -> None:
    """Every 20th one runs another function, for twenty times as long as the one that each runs."""
    program, truth = tmp_path / "saves.py", tmp_path / "truth.json"
    program.write_text(PROGRAM)
    arguments = "-F", FREQUENCY, "-o", tmp_path / "x.pb.gz", "--json", "--vm-breakpoints", "--step", "saves.py:step"
    told = run(*arguments, "--", SYSTEM_PYTHON, program, truth, command=WALL).check_succeeded().summary
    (steps,) = told["steps"]
    slow, others, spent = steps["slow"]["steps"], steps["slow"]["others"], steps["steps"]
    assert of_function(slow["ran"], "save") >= 0.8 * slow["samples"]
    assert of_function(others["ran"], "save") == 0 < of_function(others["ran"], "usual")
    sentence = next(text for text in told["answer"] if "what they take more" in text)
    assert re.search(rf" save[,)].* by {slow['samples']:,} samples\)", sentence), sentence
    # The first steps are missing: the function was not found yet.
    known = json.loads(truth.read_text())[-spent["count"] :]
    save = sum(each[1] for each in known)
    samples, rare = of_function(spent["ran"], "save"), spent["samples"] - sum(each["samples"] for each in spent["ran"])
    share = samples / spent["samples"]
    varies = 3 * math.sqrt(samples * (1 - share)) / spent["samples"]
    expected = save / sum(map(sum, known))
    assert 0.97 * expected - varies <= share + rare / spent["samples"]
    assert share <= 1.03 * expected + varies
    assert 0.97 * save <= spent["on_cpu_ns"] * expected <= 1.1 * save
