"""Holders of Python's interpreter lock (GIL), and the functions in which they have it, for every CPython that this
machine has."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from commands import TRACE_OFFCPU
from pythons import interpreters
from stallscope.converters import pprof
from stallscope.converters.model.gil import GilTimes
from stallscope.converters.model.locks import GIL, OWNER, WAKER, LockTimes
from stallscope.tracers.engines.ebpf.measures.gil import UNREAD

WORKLOADS = Path(__file__).resolve().parents[1] / "workloads"
WHOLE = """
import sys
from stallscope.converters.facts.wait_sites import Site
from stallscope.tracers import offcpu
from stallscope.tracers.engines.ebpf import gil

class Whole:
    def of(self, stack):
        return Site(tuple(frame.name for frame in stack), "")

gil.Sites, gil.MOST_THREADS = Whole, 1000
sys.argv[0] = "trace-offcpu"
sys.exit(offcpu.main())
"""
"""A trace that keeps all functions of a stack."""
NAMES = {
    name
    for part in (threading, threading.Thread, threading.Event, threading.Condition)
    for function in vars(part)
    for name in (function, f"{getattr(part, '__name__', '')}.{function}")
} | {"run"}
"""Functions of Python's library that the workload calls."""
SCRIPT, FUNCTIONS = WORKLOADS / "gil_holder.py", WORKLOADS / "gil_functions.py"


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
    """The holder sleeps meanwhile and wakes nobody: who waits does it 5 ms at a time, and only the lock tells who has
    it."""
    lock, holder = traced(interpreters()[version], tmp_path)
    held = sum(thread.time for thread in lock.holders if (thread.tid, thread.source) == (holder, OWNER))
    assert held >= 0.9 * lock.time, lock.holders
    assert {thread.pid for thread in lock.holders} == {lock.pid}


def test_without_python(live: None, tmp_path: Path) -> None:
    """Nobody looks for interpreters then, and only wake-ups tell."""
    newest = list(interpreters().values())[-1]
    lock, _ = traced(newest, tmp_path, "--no-python")
    assert {thread.source for thread in lock.holders} == {WAKER}


def functions(command: tuple[str, ...], folder: Path, how: str, *trace: str) -> tuple[GilTimes, Any, dict[str, int]]:
    """Times of the lock of `gil_functions.py`, the ids of its threads by name, and what was lost."""
    truth, out = folder / "truth.json", folder / "out.pb.gz"
    line = [*(trace or [TRACE_OFFCPU]), "-o", out, "--", *command, FUNCTIONS, truth, how]
    subprocess.run(line, check=True, capture_output=True, timeout=120)
    with out.open("rb") as file:
        profile = pprof.load(file)
    (gil,) = profile.gil
    return gil, json.loads(truth.read_text()), profile.lost


@pytest.mark.parametrize("version", list(interpreters()))
def test_functions_of_those_that_have_it(live: None, tmp_path: Path, version: str) -> None:
    """Two threads sleep with the lock held, each in a function of its own."""
    gil, ids, _ = functions(interpreters()[version], tmp_path, "turns")
    time: Counter[tuple[str, str]] = Counter()
    for holder in gil.holders:
        if holder.frames[-1:] and holder.frames[-1].endswith(" sleep_with_lock"):
            time[next(name for name, tid in ids.items() if tid == holder.tid), holder.frames[0]] += holder.time
    mine, others = time["hog0", "hog"], time["other1", "other"]
    assert mine + others >= 0.9 * gil.time, gil
    assert others < mine, time
    assert others > 0, time
    assert set(time) == {("hog0", "hog"), ("other1", "other")}
    assert {thread.tid for thread in gil.waiters} >= set(ids.values())
    assert gil.unknown <= 0.05 * gil.time


@pytest.mark.parametrize("version", list(interpreters()))
def test_functions_that_change_meanwhile(live: None, tmp_path: Path, version: str) -> None:
    """The thread that has the lock calls and returns all the time: what is told of it was true at one moment."""
    gil, ids, lost = functions(interpreters()[version], tmp_path, "changes", sys.executable, "-c", WHOLE)
    changing = [holder for holder in gil.holders if holder.tid == ids["change0"]]
    assert sum(holder.waits for holder in changing) >= 100, gil
    told = [holder for holder in changing if holder.frames]
    # Up to 3.10, each function takes a read, and while 60 are read, many change: the others are counted.
    least, stacks = (0.7, 20) if tuple(map(int, version.split(".")[:2])) >= (3, 11) else (0.1, 5)
    assert sum(holder.waits for holder in told) >= least * sum(holder.waits for holder in changing), changing
    assert sum(holder.waits for holder in changing if not holder.frames) <= lost.get(UNREAD, 0)
    assert len({holder.frames for holder in told}) >= stacks
    for holder in told:
        text = " ".join(holder.frames)
        # One that is seen for the first time when the process ends has no name.
        inside = r"outer_(\d+)(?: outer_\3)*(?: inner_\3| \[Python function\])?"
        whole = re.fullmatch(rf"(.* )?run change( {inside}| (Event\.)?is_set)?", text)
        assert whole or "outer" not in text, text
        assert whole or {*holder.frames} <= NAMES, text


@pytest.mark.parametrize("tool", ["trace-wall", "trace-wakeup"])
def test_other_commands_tell_it(live: None, tmp_path: Path, tool: str) -> None:
    gil, ids, _ = functions(
        list(interpreters().values())[-1], tmp_path, "turns", str(Path(TRACE_OFFCPU).with_name(tool))
    )
    assert {holder.tid for holder in gil.holders} >= {ids["hog0"], ids["other1"]}
    assert gil.unknown <= 0.05 * gil.time
