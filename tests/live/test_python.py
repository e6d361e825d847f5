"""Python functions in stacks, for every CPython that this machine has."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import run
from pythons import interpreters
from runner import Workload
from stallscope.converters.model import Sample
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf import probes
from stallscope.tracers.engines.ebpf.assemble import profile_of
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.probes import ProbeOptions, Probes
from stallscope.tracers.engines.ebpf.session import Session
from stallscope.tracers.kernel.records import RecordSink
from stallscope.tracers.kernel.shapes import BTF_SHAPES, Shape
from stallscope.tracers.measures.offcpu import OffCpu
from tracing import Traced, run_traced

NOT_BY_PY_SPY = (3, 14)
"""py-spy 0.4 reads older versions."""
ENOUGH = 4
"""Versions that a machine for these tests has."""


@pytest.fixture(params=list(interpreters()))
def python(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return interpreters()[request.param]


def test_enough_interpreters(require: Callable[[bool, str], None]) -> None:
    versions = {tuple(version.split(".")[:2]) for version in interpreters()}
    require(len(versions) >= ENOUGH, f"there are only {len(versions)} versions of Python")


def options(pid: int) -> ProbeOptions:
    return ProbeOptions(Scope(tgids={pid}), collectors([OffCpu()]), python=True)


def functions(sample: Sample) -> list[tuple[str, int]]:
    """Name and line of the Python functions of a stack, outermost first."""
    return [(frame.name, frame.line) for frame in sample.stack if frame.kind == "python"]


def traced(python: tuple[str, ...]) -> Traced:
    with Workload("python_frames", 1000, linger=True, python=python) as workload:
        return run_traced(workload, options(workload.pid), None)


def test_functions(python: tuple[str, ...]) -> None:
    found = traced(python)
    by_name = {wait["function"]: wait for wait in found.truth["waits"]}
    line = found.truth["line"]
    for name, truth in found.truth["stacks"].items():
        wait = by_name[name]
        samples = [sample for sample in found.profile.samples if sample.label("tid") == wait["tid"]]
        expected = [(qualified, line) for qualified, _, line in truth]
        (still,) = [sample for sample in samples if sample.label("open")]
        assert functions(still) == expected, name
        waits = Counter[tuple[tuple[str, int], ...]]()
        for sample in samples:
            if not sample.label("open"):
                waits[tuple(functions(sample)[-1:])] += sample.values[0]
        assert wait["calls"] > 20
        # The thread's own clock also has the time in which it ran, or was preempted, beside that line.
        assert 0.8 * wait["ns"] <= waits[("rest", line),] <= 1.03 * wait["ns"], (name, waits, found.profile.lost)
    assert found.counters["user_memo_hits"] > 0
    assert not found.counters["user_memo_wrong"]
    # All but what `text` makes, which is freed after each round, before anybody can read it.
    unread = [s for s in found.profile.samples if any(f.name == "[Python function]" for f in s.stack)]
    assert {sample.label("tid") for sample in unread} <= {by_name["text"]["tid"]}
    # A thread may be preempted while it begins or ends a function.
    assert (
        found.profile.lost.get("Python stacks that could not be read", 0) <= found.counters["user_memo_hits"] / 100 + 2
    )


def seen_by_py_spy(pid: int) -> dict[int, list[tuple[str, int]]]:
    """Names and lines of each thread's Python functions, outermost first."""
    py_spy = Path(sys.executable).with_name("py-spy")
    command = [py_spy, "dump", "--native", "--json", "--pid", str(pid)]
    said = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
    return {
        thread["os_thread_id"]: [
            (frame["name"], frame["line"])
            for frame in reversed(thread["frames"])
            if frame["filename"].endswith((".py", "<string>"))
        ]
        for thread in json.loads(said)
    }


@pytest.mark.parametrize("version", [v for v in interpreters() if tuple(map(int, v.split("."))) < NOT_BY_PY_SPY])
def test_same_functions_as_py_spy(version: str) -> None:
    """The threads stand still."""
    with Workload("python_frames", 1, linger=True, python=interpreters()[version]) as workload:
        workload.release()
        truth = workload.truth()
        sink = RecordSink(())
        engine = Probes(options(workload.pid), sink)
        try:
            capture = Session(engine, None, 0.5).run(sink)
        finally:
            engine.close()
        theirs = seen_by_py_spy(workload.pid)
        profile = profile_of(capture, "Off-CPU time")
        capture.spaces.close()
    ours = {sample.label("tid"): functions(sample) for sample in profile.samples if sample.label("open")}
    for wait in truth["waits"]:
        assert ours[wait["tid"]] == theirs[wait["tid"]], wait["function"]


@pytest.mark.parametrize("shape", BTF_SHAPES, ids=lambda shape: shape.name)
def test_threads_that_sleep_from_the_beginning(shape: Shape, monkeypatch: pytest.MonkeyPatch) -> None:
    """An iterator walks their stacks, or user space reads their memory."""
    monkeypatch.setattr(probes, "BTF_SHAPES", (shape,))
    with Workload("python_frames", 1, linger=True) as workload:
        workload.release()
        truth = workload.truth()
        sink = RecordSink(())
        engine = Probes(options(workload.pid), sink)
        try:
            capture = Session(engine, None, 1).run(sink)
        finally:
            engine.close()
        profile = profile_of(capture, "Off-CPU time")
        capture.spaces.close()
    asleep = {sample.label("tid"): functions(sample) for sample in profile.samples if sample.label("open")}
    for wait in truth["waits"]:
        expected = [(qualified, line) for qualified, _, line in truth["stacks"][wait["function"]]]
        assert asleep[wait["tid"]] == expected, wait["function"]


def folded(*arguments: str) -> list[str]:
    """The folded stacks that trace-offcpu prints, without the process."""
    finished = run("-o", "-", *arguments)
    assert finished.status == 0, finished.err
    return [line.partition(";")[2].rpartition(" ")[0] for line in finished.out.splitlines()]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--python",), ["recursion;rest;"]),
        (("--native-python",), ["_PyEval_EvalFrameDefault;", "recursion;rest;"]),
        (("--python-only", "-U"), ["recursion;rest"]),
        ((), ["recursion;rest;"]),
        (("--no-python",), ["_PyEval_EvalFrameDefault;"]),
    ],
)
def test_options(options: tuple[str, ...], expected: list[str]) -> None:
    with Workload("python_frames", 1, linger=True) as workload:
        workload.release()
        workload.truth()
        stacks = folded("-p", str(workload.pid), "-d", "0.5", *options)
    assert stacks
    for part in ("_PyEval_EvalFrameDefault;", "recursion;rest"):
        assert any(part in stack for stack in stacks) == any(part in wanted for wanted in expected), part
    assert all(any(part in stack for stack in stacks) for part in expected), stacks
    if "--python-only" in options:
        assert not any("nanosleep" in stack or "[" in stack for stack in stacks), stacks


FAMILY = """
import os, time
def in_child():
    for _ in range(50): time.sleep(0.01)
def in_grandchild():
    while True: time.sleep(0.01)
def in_parent(child):
    os.waitpid(child, 0)
child = os.fork()
if not child:
    grandchild = os.fork()
    if not grandchild:
        in_grandchild()
    in_child()
    os.kill(grandchild, 9)
    os._exit(0)
in_parent(child)
os.execv("/bin/sleep", ["sleep", "0.2"])
"""


def test_interpreter_that_starts_forks_and_ends_during_the_trace(python: tuple[str, ...]) -> None:
    stacks = folded("--python", "--", *python, "-c", FAMILY)
    for function in ("in_child", "in_grandchild", "in_parent"):
        assert any(f"<module>;{function};" in stack for stack in stacks), (function, stacks)
    assert any("nanosleep" in stack and "<module>" not in stack for stack in stacks), "of sleep"


CHURN = """
import threading, time
def made(number):
    name = "f_%d" % number
    text = "\\n" * (number % 7) + "def " + name + "():\\n  time.sleep(0.0005)\\n" + name + "()\\n"
    exec(compile(text, "file_%d" % number, "exec"), {"time": time})
def churn(first):
    end = time.monotonic() + 3
    while time.monotonic() < end:
        made(first)
        first += 8
while True:
    threads = [threading.Thread(target=churn, args=(i,)) for i in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""


def test_functions_that_are_made_and_freed_have_their_own_names(python: tuple[str, ...]) -> None:
    """Names are their own, or there are none: the process is killed in the middle of it."""
    process = subprocess.Popen([*python, "-c", CHURN])
    try:
        time.sleep(0.5)
        sink = RecordSink(())
        engine = Probes(options(process.pid), sink)
        killer = threading.Timer(2, process.kill)
        killer.start()
        try:
            capture = Session(engine, None, 3).run(sink)
        finally:
            engine.close()
        profile = profile_of(capture, "Off-CPU time")
        capture.spaces.close()
    finally:
        process.kill()
        process.wait()
    named = 0
    for sample in profile.samples:
        frames = [frame for frame in sample.stack if frame.kind == "python"]
        numbers = {frame.file.removeprefix("file_") for frame in frames if frame.file.startswith("file_")}
        made = [frame for frame in frames if frame.name.startswith("f_")]
        assert len(numbers) <= 1, frames
        for frame in made:
            number = int(frame.name.removeprefix("f_"))
            assert frame.file == f"file_{number}", frame
            assert frame.line - number % 7 in (1, 2), frame  # preempted at its beginning, or asleep
            named += 1
    assert any(frame.name == "made" for sample in profile.samples for frame in sample.stack)
    assert named or profile.lost["Python functions without a name"]
