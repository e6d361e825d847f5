"""Who holds Python's interpreter lock (GIL), for every CPython that this machine has."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pythons import interpreters
from stallscope.converters import pprof
from stallscope.converters.model.locks import GIL, OWNER, WAKER, LockTimes

SCRIPT = Path(__file__).resolve().parents[1] / "workloads" / "gil_holder.py"
TELLS = (3, 11)
"""From this version on, a thread state has the kernel's id of its thread."""


def traced(command: tuple[str, ...], folder: Path, *options: str) -> tuple[LockTimes, int]:
    """The lock, and the id of the thread that held it."""
    truth, out = folder / "truth.json", folder / "out.pb.gz"
    line = [Path(sys.executable).with_name("trace-wakeup"), *options, "-o", out, "--", *command, SCRIPT, truth]
    subprocess.run(line, check=True, capture_output=True, timeout=120)
    with out.open("rb") as file:
        (lock,) = [lock for lock in pprof.load(file).locks if lock.kind == GIL]
    return lock, json.loads(truth.read_text())["holder"]


@pytest.mark.parametrize("version", list(interpreters()))
def test_holder(live: None, tmp_path: Path, version: str) -> None:
    """It sleeps meanwhile and wakes nobody: who waits does it 5 ms at a time, and only the lock tells who has it."""
    lock, holder = traced(interpreters()[version], tmp_path)
    if tuple(map(int, version.split(".")[:2])) < TELLS:
        assert {thread.source for thread in lock.holders} == {WAKER}
        return
    held = sum(thread.time for thread in lock.holders if (thread.tid, thread.source) == (holder, OWNER))
    assert held >= 0.9 * lock.time, lock.holders
    assert {thread.pid for thread in lock.holders} == {lock.pid}


def test_without_python(live: None, tmp_path: Path) -> None:
    """Then nobody looks for interpreters, and only wake-ups tell."""
    newest = list(interpreters().values())[-1]
    lock, _ = traced(newest, tmp_path, "--no-python")
    assert {thread.source for thread in lock.holders} == {WAKER}
