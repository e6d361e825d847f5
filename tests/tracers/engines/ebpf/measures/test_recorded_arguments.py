"""Calls kept with their arguments around their ring. With real calls: tests/live/test_collectives.py."""

from __future__ import annotations

from stallscope.tracers.engines.ebpf.measures.recorded_arguments import RecordedArguments
from stallscope.tracers.measures.argument_options import ArgumentOptions


def test_without_options_nothing_is_recorded() -> None:
    recorded = RecordedArguments(None, str)
    recorded.consume()
    assert recorded.knobs() == {}
    assert recorded.sizes() == {}
    assert recorded.finish((), 0) is None
    assert list(recorded.remarks()) == []
    recorded.close()


def test_options_are_those_of_the_probes() -> None:
    recorded = RecordedArguments(ArgumentOptions(buffer_bytes=1 << 12), str)
    assert recorded.knobs() == {"record_call_arguments": 1}
    assert recorded.sizes() == {"call_arguments": 1 << 12, "open_arguments": 1 << 14}
    found = recorded.finish((), 0)
    assert found and len(found.calls) == 0, "nothing was read"
