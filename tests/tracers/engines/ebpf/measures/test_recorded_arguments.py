"""Calls kept with their arguments around their ring. With real calls: tests/live/test_collectives.py."""

from __future__ import annotations

import numpy as np
from stallscope.tracers.engines.ebpf.measures.argument_records import RECORD
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


def test_functions_whose_arguments_are_kept() -> None:
    recorded = RecordedArguments(ArgumentOptions(), str)
    assert recorded.keeps("ncclAllReduce")
    assert not recorded.keeps("cudaMalloc")
    assert not RecordedArguments(None, str).keeps("ncclAllReduce")


def test_what_comes_after_probes_were_removed_is_left_out() -> None:
    """Calls are missing then, and the others cannot be joined."""
    recorded = RecordedArguments(ArgumentOptions(), str)
    made = np.zeros(3, RECORD)
    made["began"], made["ended"] = (110, 190, 200), (120, 230, 210)
    recorded._blocks.append(made)
    found = recorded.finish((), 100, 200)
    assert found and (found.calls["began"].tolist(), found.until) == ([10, 90], 100)
    found = recorded.finish((), 100)
    assert found and (len(found.calls), found.until) == (3, None)
