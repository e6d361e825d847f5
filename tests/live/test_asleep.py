"""Threads that sleep when a trace begins, and until it ends: their stacks are there with every engine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import load, run
from stacks_truth import reaches_start
from stallscope.tracers.base import procfs

TRACE_OFFCPU = str(Path(sys.executable).with_name("trace-offcpu"))
DEADLOCK = """\
import threading, time
first, second, both = threading.Lock(), threading.Lock(), threading.Barrier(2)
def lock(one, other):
    with one:
        both.wait()
        with other:
            pass
for pair in (first, second), (second, first):
    threading.Thread(target=lock, args=pair).start()
time.sleep(600)
"""


@pytest.fixture
def deadlock() -> Iterator[int]:
    """A program whose three threads sleep for ever."""
    with subprocess.Popen([sys.executable, "-c", DEADLOCK]) as process:
        until = time.monotonic() + 60
        while [procfs.state(tid) for tid in procfs.tids(process.pid)] != ["S"] * 3 and time.monotonic() < until:
            time.sleep(0.01)
        yield process.pid
        process.kill()


@pytest.mark.parametrize("engine", ["libbpf", "bcc", "perf"])
def test_a_deadlock(engine: str, deadlock: int, require: Callable[[bool, str], None], tmp_path: Path) -> None:
    require(os.geteuid() == 0, "this needs root")
    output = tmp_path / "x.pb.gz"
    more = ("--native-python",) * (engine == "libbpf")
    words = ("--engine", engine, *more, "-p", deadlock, "-d", 1, "-o", output)
    done = run(*words, command=TRACE_OFFCPU).check_succeeded()
    stacks = {sample.label("tid"): sample.stack for sample in load(output).samples if sample.label("open")}
    assert len(stacks) == 3, (stacks, done.out)
    for stack in stacks.values():
        assert reaches_start(stack), stack
        assert any(frame.kind == "kernel" for frame in stack), stack
    assert "nanosleep" in " ".join(frame.name for frame in stacks[deadlock])
    assert sum(any(f.name.startswith("PyThread_acquire_lock") for f in stack) for stack in stacks.values()) == 2
