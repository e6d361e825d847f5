"""Steps that are Python functions, against the clocks of a program that calls them in many ways; for every CPython that
this machine has."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import pytest
from commands import run
from pythons import interpreters
from runner import HERE, SYSTEM_PYTHON, Workload
from stallscope.converters.model.steps import Steps
from stallscope.converters.summary.steps import steps_of
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf.measures.python_steps import PythonStepsCollector
from stallscope.tracers.engines.ebpf.probes import ProbeOptions
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.span_options import SpanOptions
from stallscope.tracers.measures.steps import PythonSteps
from stallscope.tracers.measures.timeline import Timeline
from stallscope.tracers.probe_targets.python_steps import PythonFunction
from tracing import SURVIVES, Traced, collecting, run_traced

pytestmark = pytest.mark.usefixtures("live")

ROUNDS = 20
STEP = ("--vm-breakpoints", "--step")
WALL = str(Path(sys.executable).with_name("trace-wall"))
SYSTEM = next(version for version, command in interpreters().items() if command == (SYSTEM_PYTHON,))
FORKS = f"""
{SURVIVES}
import os, time
def step():
    time.sleep(0.002)
for _ in range(500):
    step()
children = [os.fork()]
children += [os.fork()] if children[0] else []
for _ in range(20):
    step()
if 0 not in children:
    for child in children:
        os.waitpid(child, 0)
"""
DEFINED_AGAIN = f"""
{SURVIVES}
import time
def define():
    text = "def step():\\n    time.sleep(0.003)\\n"
    exec(compile("\\n" * 20 + text, (__file__ + " ")[:-1], "exec"), globals())
define()
step()
time.sleep(3)
for _ in range(6):
    for _ in range(60):
        step()
        time.sleep(0.001)
    define()
time.sleep(0.3)
"""
CALLS = 360
UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1}
CALL_SECONDS = 0.004
CHECKPOINTS = f"""
{SURVIVES}
import time
def save():
    time.sleep(0.08)
def step(number):
    time.sleep(0.002)
    if number % 8 == 0:
        save()
for number in range(200):
    step(number)
"""
PAUSE = 1_000_000
"""ns that each call sleeps."""
SEES_EXCEPTIONS = (3, 12)
"""Version from which on a call that an exception leaves is a step."""
FILE = "python_steps.py"
GROUPS = (
    ("plain", "recursive", "shared", "closure"),
    ("Model.step", "__getitem__", "loss", "__call__"),
    ("looks", "mapped", "raises", "suspended"),
    ("outer", "inner", "deepest"),
    ("even", "odd", "left", "right"),
)


@pytest.fixture(params=list(interpreters()))
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def traced(version: str, names: tuple[str, ...], rounds: int = ROUNDS) -> tuple[list[Steps], Traced, list[str]]:
    functions = [PythonFunction(FILE, name) for name in names]
    steps = PythonStepsCollector(PythonSteps(functions, SpanOptions(1 << 16)))
    with Workload("python_steps", rounds, linger=True, python=interpreters()[version]) as workload:
        scope = Scope(tgids={workload.pid})
        found = run_traced(workload, ProbeOptions(scope, collecting([OffCpu(), steps, Timeline()]), python=True), None)
    assert found.profile.scheduling
    assert not any(steps.losses().values()), steps.losses()
    return list(steps_of(found.profile.scheduling)), found, list(steps.remarks())


@pytest.mark.parametrize("names", GROUPS, ids=lambda names: names[0])
def test_each_call_is_a_step(version: str, names: tuple[str, ...]) -> None:
    found, traced_, remarks = traced(version, names)
    truth = {wait["function"]: wait for wait in traced_.truth["waits"]}
    counts, walls = Counter[str](), Counter[str]()
    for steps in found:
        name = steps.name.removeprefix(f"{FILE}:").rpartition(".")[2]
        counts[name] += steps.steps.count
        walls[name] += steps.steps.wall
        assert steps.not_whole <= traced_.truth["traps"], steps
        assert steps.steps.on_cpu + steps.steps.blocked + steps.steps.runnable == steps.steps.wall
    plain = {name.rpartition(".")[2] for name in names} - {"suspended"}
    left = traced_.truth["left"] if tuple(traced_.truth["version"]) >= SEES_EXCEPTIONS else 0
    counts["raises"] -= left
    counts = +counts
    lost = traced_.truth["traps"]
    assert counts.keys() == plain, remarks
    assert all(abs(counts[name] - truth[name]["calls"]) <= lost for name in plain), (counts, truth, remarks)
    for name in plain:
        # The clocks around a call go on while its thread has no core.
        ns = truth[name]["ns"] + (left * PAUSE if name == "raises" else 0)
        assert 0.75 * ns <= walls[name] <= ns * (2 if left and name == "raises" else 1), name
    assert any("begins and ends many times" in each for each in remarks) == ("suspended" in names)
    assert traced_.truth["left"] == ROUNDS
    if "raises" in names and not left:
        assert any(f"not given back there: {ROUNDS}; calls that an exception left" in each for each in remarks), remarks


def test_threads_are_told_apart(version: str) -> None:
    found, traced_, _ = traced(version, ("shared",))
    assert len(found) == 3
    assert all(abs(steps.steps.count - ROUNDS) <= traced_.truth["traps"] for steps in found)
    assert len({steps.tid for steps in found}) == 3


@pytest.mark.parametrize("given", ["python_steps.py:Model.step", f"{HERE}/python_steps.py:step"])
def test_as_a_user_sees_them(version: str, given: str, tmp_path: Path) -> None:
    """The process runs already, or is started: its first steps may be missing, which is told."""
    arguments = "-o", tmp_path / "x.svg", "--json", *STEP, given
    command = [*interpreters()[version], HERE / "python_steps.py", 40]
    finished = run(*arguments, "--", *command, command=WALL).check_succeeded()
    (steps,) = finished.summary["steps"]
    is_qualified = tuple(map(int, version.split("."))) >= (3, 11)
    assert steps["name"] == f"python_steps.py:{'Model.' if is_qualified else ''}step"
    assert 10 <= steps["steps"]["count"] <= 80
    assert "its steps before are missing" in finished.out


def test_a_function_that_is_not_there(tmp_path: Path) -> None:
    with Workload("python_steps", ROUNDS, linger=True) as workload:
        arguments = "-o", tmp_path / "x.svg", "-d", 1, *STEP, "python_steps.py:stepp", "-p", workload.pid
        said = run(*arguments, command=WALL).check_succeeded().out
    assert "no traced process has a Python function python_steps.py:stepp: there is " in said
    assert "Model.step" in said


def test_a_function_that_is_defined_again(version: str, tmp_path: Path) -> None:
    """The code object is freed, and another one is at the same place or at another. The text tells what is not seen."""
    program = tmp_path / "again.py"
    program.write_text(DEFINED_AGAIN)
    arguments = "-o", tmp_path / "x.svg", "--json", *STEP, "again.py:step", "--", *interpreters()[version], program
    finished = run(*arguments, command=WALL).check_succeeded()
    (steps,) = finished.summary["steps"]
    told = re.search(r"defined again, or dropped, \d+ times?; it was not watched for ([0-9.]+) (\S+):", finished.out)
    unseen = float(told[1]) * UNITS[told[2]] if told else 0
    count = steps["steps"]["count"]
    assert CALLS / 2 < count <= CALLS + 1, finished.out
    assert CALLS - count <= unseen / CALL_SECONDS + 6, finished.out
    loop = (steps["steps"]["mean_ns"] + steps["between"]["mean_ns"]) / 1e9
    assert steps["steps_per_second"] == pytest.approx(1 / loop, rel=0.05)
    assert "raise --table-size" not in finished.out


def test_functions_of_forked_processes(tmp_path: Path) -> None:
    program = tmp_path / "forks.py"
    program.write_text(FORKS)
    arguments = "-o", tmp_path / "x.svg", "--json", *STEP, "forks.py:step", "--", *interpreters()[SYSTEM], program
    told = run(*arguments, command=WALL).check_succeeded().summary
    counts = {steps["pid"]: steps["steps"]["count"] for steps in told["steps"]}
    assert len(counts) == 3
    assert all(19 <= count <= 20 for count in sorted(counts.values())[:2]), counts


def test_steps_that_are_slow_again_and_again(tmp_path: Path) -> None:
    program = tmp_path / "saves.py"
    program.write_text(CHECKPOINTS)
    arguments = "-o", tmp_path / "x.svg", "--json", *STEP, "saves.py:step", "--step", "saves.py:save"
    told = run(*arguments, "--", *interpreters()[SYSTEM], program, command=WALL).check_succeeded().summary
    steps, saves = told["steps"]
    slow = steps["slow"]
    assert slow["every"] == 8
    # The functions may have been found in the middle of a step.
    assert abs(slow["steps"]["count"] - saves["steps"]["count"]) <= 1
    assert slow["steps"]["waits"][0]["frames"][-1] == "clock_nanosleep"
    assert 0.9 <= saves["steps"]["wall_ns"] / slow["steps"]["waits"][0]["time_ns"] <= 2
    assert slow["steps"]["mean_ns"] >= 80 * PAUSE > 3 * slow["others"]["mean_ns"]
    assert told["answer"][0].startswith("Every 8th step of saves.py:step (number ")
    assert told["answer"][1].split()[2:4] == ["of", "saves.py:step"]
    assert told["answer"][2].split()[2:4] == ["of", "saves.py:save"]
