"""Python functions in stacks, for every CPython that this machine has."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest
from runner import SYSTEM_PYTHON, Workload
from stallscope.converters.model import Sample
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf.probes import ProbeOptions
from stallscope.tracers.measures.offcpu import OffCpu
from tracing import Traced, run_traced

OLDEST, NEWEST = (3, 8), (3, 14)
ENOUGH = 4
"""Versions that a machine for these tests has."""
_PLACES = ("~/.pyenv/versions/*/bin/python3", "/opt/python*/bin/python3", "/usr/bin/python3.[0-9]*")


def _candidates() -> Iterator[list[str]]:
    """Commands that run an interpreter: those in $STALLSCOPE_PYTHONS, separated by `;`, and those in usual places."""
    yield [SYSTEM_PYTHON]
    yield from (shlex.split(command) for command in os.environ.get("STALLSCOPE_PYTHONS", "").split(";") if command)
    for place in _PLACES:
        path = Path(place).expanduser()
        anchor = Path(path.anchor)
        yield from ([str(found)] for found in sorted(anchor.glob(str(path.relative_to(anchor)))))


@lru_cache
def interpreters() -> dict[str, tuple[str, ...]]:
    """One command for each version, by its number; the system's own besides."""
    found: dict[str, tuple[str, ...]] = {}
    for command in _candidates():
        ask = [*command, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"]
        try:
            said = subprocess.run(ask, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            continue
        if re.fullmatch(r"3\.\d+\.\d+", said) and OLDEST <= tuple(map(int, said.split(".")))[:2] <= NEWEST:
            found.setdefault(said, tuple(command))
    return found


@pytest.fixture(params=sorted(interpreters(), key=lambda version: [int(part) for part in version.split(".")]))
def python(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return interpreters()[request.param]


def test_enough_interpreters() -> None:
    versions = {tuple(version.split(".")[:2]) for version in interpreters()}
    if len(versions) < ENOUGH and os.environ.get("REQUIRE_LIVE") != "1":
        pytest.skip(f"only {len(versions)} versions of Python here")
    assert len(versions) >= ENOUGH, interpreters()


def options(pid: int) -> ProbeOptions:
    return ProbeOptions(Scope(tgids={pid}), (OffCpu(),), python=True)


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
        waited = sum(s.values[0] for s in samples if not s.label("open") and functions(s)[-1:] == [("rest", line)])
        assert wait["calls"] > 50
        assert waited == pytest.approx(wait["ns"], rel=0.05), name
    assert found.counters["user_memo_hits"] > 0
    assert not found.counters["user_memo_wrong"]
    # All but what `text` makes, which is freed after each round, before anybody can read it.
    unread = [s for s in found.profile.samples if any(f.name == "[Python function]" for f in s.stack)]
    assert {sample.label("tid") for sample in unread} <= {by_name["text"]["tid"]}
    # A thread may be preempted while it begins or ends a function.
    assert found.profile.lost["Python stacks that could not be read"] <= found.counters["user_memo_hits"] / 100 + 2
