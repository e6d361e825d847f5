"""Python functions in stacks, for every CPython that this machine has."""

from __future__ import annotations

import os

import pytest
from pythons import interpreters
from runner import Workload
from stallscope.converters.model import Sample
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf.probes import ProbeOptions
from stallscope.tracers.measures.offcpu import OffCpu
from tracing import Traced, run_traced

ENOUGH = 4
"""Versions that a machine for these tests has."""


@pytest.fixture(params=list(interpreters()))
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
    assert (
        found.profile.lost.get("Python stacks that could not be read", 0) <= found.counters["user_memo_hits"] / 100 + 2
    )
