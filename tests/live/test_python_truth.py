"""The time of Python functions, against the clocks of a program with six threads; for every CPython that this machine
has. What a thread waits is exact; what it runs is split among its functions by samples."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from pythons import interpreters
from runner import Workload
from stallscope.converters.model import Sample
from stallscope.converters.model.states import RUNNING
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf.probes import ProbeOptions
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu
from tracing import Traced, collecting, run_traced

pytestmark = pytest.mark.usefixtures("live")

FREQUENCY = 999
TICK = 1_000_000_000 // FREQUENCY
ENOUGH = 100
"""Samples of a thread: fewer say little of its functions, which then run for less than these take."""
SLACK = 0.03
CLOCKS = 30_000
"""ns per call by which the program's clocks may differ: they are read one after the other, between switches."""


def inside(sample: Sample, function: str) -> bool:
    return any(frame.kind == "python" and frame.name == function for frame in sample.stack)


@pytest.mark.parametrize("version", interpreters())
def test_time_of_functions(version: str) -> None:
    measures = OffCpu(time="wall"), OnCpu(FREQUENCY, time="wall")
    with Workload("python_truth", 2000, linger=True, python=interpreters()[version]) as workload:
        scope = Scope(tgids={workload.pid})
        found = run_traced(workload, ProbeOptions(scope, collecting(measures), python=True), None)
    functions = sorted(wait["function"] for wait in found.truth["waits"])
    assert len(functions) == 11, functions
    wrong = [text for wait in found.truth["waits"] for text in compared(found, wait)]
    assert not wrong, "\n".join(wrong)


def compared(found: Traced, truth: dict[str, Any]) -> Iterator[str]:
    """Texts on what is wrong in the time of a function."""
    samples = found.profile.index("samples")
    own = [sample for sample in found.profile.samples if sample.label("tid") == truth["tid"]]
    running = [sample for sample in own if sample.label("state") == RUNNING]
    function = truth["function"]
    ran = sum(s.values[0] for s in running if inside(s, function))
    waited = sum(s.values[0] for s in own if inside(s, function)) - ran
    # Of n samples, a share p varies by the root of np(1 - p). A run of all versions compares some hundred shares.
    number, whole = (sum(s.values[i] for s in running) for i in (samples, 0))
    share = min(max(truth["cpu_ns"], TICK) / max(whole, 1), 1)
    varies = 5 * math.sqrt(share * (1 - share) / max(number, 1)) * whole + TICK if number >= ENOUGH else whole
    slack = CLOCKS * truth["calls"] + TICK
    # The thread's own clock leaves out what interrupts and the hypervisor took from its core.
    expected = {
        "takes": (waited + ran, truth["ns"], truth["ns"], slack + varies),
        "waits": (waited, truth["ns"] - truth["cpu_ns"] - found.stolen, truth["ns"] - truth["cpu_ns"], slack),
        "runs": (ran, truth["cpu_ns"], truth["cpu_ns"] + found.stolen, varies),
    }
    for what, (measured, least, most, allowed) in expected.items():
        if not (1 - SLACK) * least - allowed <= measured <= (1 + SLACK) * most + allowed:
            yield f"{function} {what} {least / 1e6:.2f} … {most / 1e6:.2f} ms, measured {measured / 1e6:.2f} ms"
