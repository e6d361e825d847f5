"""Steps against the clocks of a program that knows its own."""

from __future__ import annotations

import sys
from pathlib import Path

import perfetto_rules
import pytest
from commands import run
from runner import FOLDER
from stallscope.converters.model.steps import Steps
from stallscope.converters.summary.steps import steps_of
from stallscope.tracers.engines.ebpf.measures.steps import StepsCollector
from stallscope.tracers.measures import steps as measure
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.span_options import SpanOptions
from stallscope.tracers.measures.timeline import Timeline
from stallscope.tracers.probe_targets.steps import StepFunction, StepFunctions
from stallscope.tracers.probe_targets.wanted import Library
from tracing import Trace, Traced

pytestmark = pytest.mark.usefixtures("live")

COUNT = 60
CLOCK = 100_000
"""ns by which a step may differ: the program's clocks also run while the probes and their traps do."""
WORKLOAD = FOLDER / "steps"
WALL, CONVERT = (str(Path(sys.executable).with_name(name)) for name in ("trace-wall", "trace-convert"))


def measured(trace: Trace, *arguments: int, function: str = "train_step") -> tuple[Steps, Traced]:
    functions = StepFunctions.of([StepFunction(Library.at(str(WORKLOAD)), function)])
    steps = StepsCollector(measure.Steps(functions, SpanOptions(1 << 16)))
    traced = trace("steps", *arguments, measures=(OffCpu(), steps, Timeline()))
    assert traced.profile.scheduling
    (found,) = steps_of(traced.profile.scheduling)
    assert not any(traced.profile.lost[kind] for kind in steps.losses())
    return found, traced


def test_steps_are_those_that_the_program_timed(trace: Trace) -> None:
    found, traced = measured(trace, COUNT)
    truth = {wait["function"]: wait for wait in traced.truth["waits"]}
    steps, between = found.steps, found.between
    (thread,) = traced.truth["threads"]
    assert (found.name, found.tid, found.not_whole) == ("steps:train_step", thread["tid"], 0)
    assert (steps.count, between.count) == (COUNT, COUNT - 1)
    # Between its clock and the call, the program may have had no core.
    queued = traced.thread(thread["tid"]).runnable - steps.runnable
    slack = COUNT * CLOCK + queued + traced.stolen
    assert steps.wall == pytest.approx(truth["train_step"]["ns"], rel=0.01, abs=slack)
    slept = truth["synchronise"]["ns"]
    assert 0 <= slept - steps.blocked <= steps.runnable + COUNT * CLOCK
    assert steps.on_cpu == pytest.approx(thread["cpu_ns"], rel=0.1)
    assert steps.on_cpu + steps.blocked + steps.runnable == steps.wall
    (wait,) = [wait for wait in steps.waits if "synchronise" in wait.site.frames]
    # On a busy machine the timer of a sleep may expire before the thread has left its core.
    assert 0.9 * COUNT <= wait.number <= COUNT
    assert 0.9 * steps.blocked <= wait.time <= steps.blocked
    (wait,) = [wait for wait in between.waits if "next_batch" in wait.site.frames]
    assert 0.9 * COUNT - 1 <= wait.number <= COUNT - 1
    assert not any("next_batch" in wait.site.frames for wait in steps.waits)
    assert not any("synchronise" in wait.site.frames for wait in between.waits)


def test_slow_steps_are_found(trace: Trace) -> None:
    """Every 10th one sleeps for five times as long."""
    found, _ = measured(trace, 50, 100, 20_000)
    slept = [step for step in found.slowest if step.spent.blocked >= 100_000_000]
    # Others are only as slow if they had no core.
    others = [step for step in found.slowest if step not in slept]
    assert all(step.spent.runnable >= 50_000_000 for step in others)
    assert len(found.slowest) == 5
    assert {step.number for step in slept} <= {10, 20, 30, 40, 50}
    assert len(slept) == 5 - len(others) > 0
    assert all("synchronise" in step.spent.waits[0].site.frames for step in slept)


@pytest.mark.parametrize("command", ["trace-wall", "trace-offcpu"])
def test_as_a_user_sees_them(command: str, tmp_path: Path) -> None:
    program = str(Path(sys.executable).with_name(command))
    out = tmp_path / "x.pftrace"
    arguments = "-o", out, "--json", "--step", f"{WORKLOAD}:train_step", "--", WORKLOAD, 30
    told = run(*arguments, command=program).check_succeeded().summary
    (steps,) = told["steps"]
    assert steps["name"] == "steps:train_step"
    assert steps["steps"]["count"] == 30
    assert any(sentence.startswith("30 steps of steps:train_step take ") for sentence in told["answer"])
    slices = perfetto_rules.read(out.read_bytes()).slices
    assert len([each for each in slices if each.name == "steps:train_step"]) == 30


def test_a_saved_profile_has_them(tmp_path: Path) -> None:
    saved = tmp_path / "run.pb.gz"
    arguments = "-o", saved, "--step", f"{WORKLOAD}:train_step", "--", WORKLOAD, 30
    said = " ".join(run(*arguments, command=WALL).check_succeeded().out.split())
    table = run(saved, "--form", "steps", "-o", "-", command=CONVERT).check_succeeded().out
    assert "30 steps of steps:train_step take" in table
    rows = [
        " ".join(line.split()) for line in table.splitlines() if "nanosleep" in line or "steps:train_step in" in line
    ]
    assert len(rows) >= 5
    assert all(row[:60] in said for row in rows), rows


def test_a_function_that_is_not_there(tmp_path: Path) -> None:
    arguments = "-o", tmp_path / "x.svg", "--step", f"{WORKLOAD}:train_stepp", "--", WORKLOAD
    cause, remedy = run(*arguments).check_failed(2)
    assert "train_stepp" in cause
    assert "train_step" in remedy
