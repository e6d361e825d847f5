from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from stallscope.tracers.engines.ebpf.measures.probed import Probe
from stallscope.tracers.engines.ebpf.measures.protocol import Ended
from stallscope.tracers.engines.ebpf.measures.spans import Spans
from stallscope.tracers.engines.ebpf.measures.steps import StepsCollector
from stallscope.tracers.kernel.uprobes import Way
from stallscope.tracers.measures.protocol import columns_of
from stallscope.tracers.measures.span_options import SpanOptions
from stallscope.tracers.measures.steps import Steps
from stallscope.tracers.probe_targets.steps import StepFunction, StepFunctions
from stallscope.tracers.probe_targets.wanted import Library

FUNCTIONS = StepFunctions.of([StepFunction(Library("/opt/lib/libtrain.so"), "step")])


def measure() -> StepsCollector:
    made = StepsCollector(Steps(FUNCTIONS, SpanOptions(100)), way=Way.MULTI)
    probed: Any = SimpleNamespace(
        functions=[Probe("step", "/opt/lib/libtrain.so", True)], remarks=lambda: iter(["on it"])
    )
    made.probed = probed
    return made


def test_spans_are_steps() -> None:
    made = measure()
    made._recorded._spans = Spans(SpanOptions(100))
    made._recorded._spans.add(begin=np.array([10]), end=20, tid=7, name=0)
    found = made.spans()
    assert found
    assert [tuple(name)[:2] for name in found.names] == [("libtrain.so:step", "step")]
    assert found.calls["end"].tolist() == [20]


def test_it_adds_nothing_to_the_picture() -> None:
    made = measure()
    assert columns_of([made]) == ()
    ended = Ended(0, 1, [])
    made._totals = SimpleNamespace(take=list)  # type: ignore[assignment]
    assert (made.rows(ended), made.calls(ended), made.functions()) == ([], [], frozenset())
    made._open = [SimpleNamespace(tid=7)]  # type: ignore[list-item]
    assert not any("picture" in remark for remark in made.remarks())


def test_it_records_each_call() -> None:
    assert measure().knobs() == {"measure_calls": 1, "record_call_spans": 1, "call_span_over": 0}
    assert measure().modules == ("/opt/lib/libtrain.so",)
