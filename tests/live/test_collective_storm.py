"""Collectives as fast as threads can call them: each call is kept, or told as lost."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from runner import FOLDER
from stallscope.converters.collectives.records import CallTable
from stallscope.tracers.engines.ebpf import assemble
from stallscope.tracers.engines.ebpf.capture import Capture
from stallscope.tracers.engines.ebpf.measures.recorded_arguments import WITHOUT_ARGUMENTS
from stallscope.tracers.measures.argument_options import ArgumentOptions
from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.probe_targets.wanted import Library, Wanted
from tracing import Trace

pytestmark = pytest.mark.usefixtures("live")

NCCL = Wanted(libraries=(Library.at(str(FOLDER / "libnccl.so.2")),), symbols=re.compile("^nccl"))
PROCESSES, THREADS, CALLS = 2, 2, 100_000


@pytest.mark.parametrize(
    ("options", "loses"), [(ArgumentOptions(), False), (ArgumentOptions(buffer_bytes=1 << 14), True)]
)
def test_no_call_is_lost_untold(
    options: ArgumentOptions, loses: bool, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most are lost with a buffer that is much too small: the number is told."""
    seen: list[CallTable] = []
    joined = assemble._watched

    def keep(capture: Capture) -> object:
        assert capture.collectives
        seen.append(capture.collectives)
        return joined(capture)

    monkeypatch.setattr(assemble, "_watched", keep)
    profile = trace("nccl_storm", PROCESSES, THREADS, CALLS, measures=(Calls(NCCL, arguments=options),)).profile
    made = PROCESSES * THREADS * CALLS
    (table,) = seen
    assert set(table.names) == {"ncclAllReduce"}
    kept = Counter(table.calls["tid"].tolist())
    assert len(table.calls) + table.lost == made
    assert profile.lost[WITHOUT_ARGUMENTS] == table.lost
    assert bool(table.lost) >= loses
    if not table.lost:
        assert set(kept.values()) == {CALLS} and len(kept) == PROCESSES * THREADS
    counted = sum(call.count for call in profile.calls)
    assert counted + profile.lost["calls"] == made
    assert [each.calls for each in profile.watched] == ([] if table.lost else [THREADS * CALLS] * PROCESSES)
