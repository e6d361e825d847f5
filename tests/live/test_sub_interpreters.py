"""Threads that are in several interpreters of a process, for every CPython that this machine has."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from commands import TRACE_OFFCPU
from pythons import interpreters
from stallscope.converters import pprof
from stallscope.converters.model.states import INTERRUPTIBLE

SCRIPT = Path(__file__).resolve().parents[1] / "workloads" / "sub_interpreters.py"
TOLD = (3, 11)
"""Version from which on it is told which thread uses an interpreter that another one has made."""
MOST = 0.8
"""Share of the waits, the others of which are before the first names are known."""


def waits(version: str, folder: Path, how: str) -> dict[str, Counter[str]]:
    """Time of each thread's waits in each innermost Python function."""
    truth, out = folder / "truth.json", folder / "out.pb.gz"
    command = [*interpreters()[version], SCRIPT, truth, how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as workload:
        assert workload.stdout
        assert workload.stdout.readline() == "ready\n"
        trace = [TRACE_OFFCPU, "-o", out, "-p", str(workload.pid), "-d", "1.5"]
        try:
            subprocess.run(trace, check=True, capture_output=True, timeout=120)
        finally:
            Path(f"{truth}.end").touch()
    ids = {tid: name for name, tid in json.loads(truth.read_text()).items()}
    found: dict[str, Counter[str]] = {name: Counter() for name in ids.values()}
    with out.open("rb") as file:
        for sample in pprof.load(file).samples:
            functions = [frame.name for frame in sample.stack if frame.kind == "python"]
            tid = sample.label("tid")
            if sample.label("state") == INTERRUPTIBLE and tid in ids:
                found[ids[tid]][functions[-1] if functions else ""] += sample.values[0]
    return found


@pytest.mark.parametrize("version", list(interpreters()))
def test_one_that_is_not_used(live: None, tmp_path: Path, version: str) -> None:
    """The unused one's state has no functions, but the same thread."""
    found = waits(version, tmp_path, "idle")["main"]
    assert found["asleep"] >= MOST * found.total() > 0, found
    assert found["inside"] == 0


@pytest.mark.parametrize("version", list(interpreters()))
def test_one_in_the_other(live: None, tmp_path: Path, version: str) -> None:
    found = waits(version, tmp_path, "nested")["main"]
    assert found["inside"] >= MOST * found.total() > 0, found
    assert found["use"] == 0, found


@pytest.mark.parametrize("version", [v for v in interpreters() if tuple(map(int, v.split(".")[:2])) >= TOLD])
def test_one_that_another_thread_has_made(live: None, tmp_path: Path, version: str) -> None:
    found = waits(version, tmp_path, "other")
    assert found["main"]["asleep"] >= MOST * found["main"].total() > 0, found
    assert found["main"]["inside"] == 0, found
    assert found["other"]["asleep"] == 0, found
