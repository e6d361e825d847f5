"""Calls kept one by one around their ring. With real calls: tests/live/test_spans.py."""

from __future__ import annotations

from stallscope.tracers.engines.ebpf.measures.recorded_calls import RecordedCalls
from stallscope.tracers.measures.span_options import SpanOptions


def test_without_options_nothing_is_recorded() -> None:
    recorded = RecordedCalls(None)
    recorded.consume()
    assert recorded.knobs() == {}
    assert recorded.sizes() == {}
    assert recorded.finish(str, ()) is None
    assert list(recorded.remarks()) == []
    recorded.close()


def test_options_are_those_of_the_probes() -> None:
    recorded = RecordedCalls(SpanOptions(1, over=7, buffer_bytes=1 << 12))
    assert recorded.knobs() == {"record_call_spans": 1, "call_span_over": 7}
    assert recorded.sizes() == {"call_spans": 1 << 12}
    assert recorded.finish(str, ()) is None, "nothing was read"
