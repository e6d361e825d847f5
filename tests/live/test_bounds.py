"""More stacks than the tables or the memory hold: all time is there, and what is put together says so."""

from __future__ import annotations

from runner import Workload
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf.bounds import _OURS
from stallscope.tracers.engines.ebpf.probes import ProbeOptions
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu
from stallscope.tracers.measures.protocol import Measure
from tracing import Traced, collecting, run_traced

CALLS = 20_000


def traced(*measures: Measure, memory: int = 400 << 20, ways: int = 1 << 24) -> Traced:
    with Workload("many_stacks", 2, CALLS, ways, 150, linger=True) as workload:
        scope = Scope(pids=list(workload.pids))
        scope.resolve()
        options = ProbeOptions(scope, collecting(measures), table_entries=1 << 14, memory=memory)
        return run_traced(workload, options, None)


def check_time(found: Traced) -> None:
    """The rows of each thread are its time off the CPU, which the scheduler's accounts give."""
    lost = {kind: found.profile.lost[kind] for kind in ("intervals", "stacks", "threads", "exit and exec records")}
    assert not any(lost.values()), lost
    for thread in found.profile.threads:
        off = thread.runnable + sum(thread.blocked.values())
        assert thread.on_cpu + off == thread.wall
        rows = [sample for sample in found.profile.samples if sample.label("tid") == thread.tid]
        assert sum(sample.values[0] for sample in rows if sample.label("state") != "running") == off


def test_the_tables_are_drained(live: None) -> None:
    found = traced(OffCpu())
    assert found.counters["new_waits"] > 2 << 14
    check_time(found)
    for wait in found.truth["waits"]:
        assert abs(found.blocks("leaf", wait["tid"]) + found.unseen - wait["blocks"]) <= max(found.unseen, 2)
    assert not found.samples("[other stacks]")
    assert not found.samples("[stack lost]")


def test_rare_stacks_are_put_together(live: None) -> None:
    found = traced(OffCpu(), memory=_OURS + (6 << 20))
    check_time(found)
    for wait in found.truth["waits"]:
        known = found.blocks("leaf", wait["tid"])
        rare = found.blocks("[other stacks]", wait["tid"])
        assert rare > CALLS // 2
        assert known > 0
        assert abs(known + rare + found.unseen - wait["blocks"]) <= max(found.unseen, 2)
    assert not found.samples("[stack lost]")


def test_stacks_that_were_forgotten_come_again(live: None) -> None:
    """The workload's ways come again and again: what one part of the trace has forgotten, the next one has to name."""
    found = traced(OffCpu(), memory=_OURS + (3 << 20), ways=4_000)
    check_time(found)
    assert found.counters["new_stacks"] > 2 * 4_000
    assert not found.samples("[stack lost]")


def test_samples_too(live: None) -> None:
    found = traced(OffCpu(time="wall"), OnCpu(4_000, time="wall"), memory=_OURS + (6 << 20))
    check_time(found)
    assert found.profile.lost["samples"] == 0
    assert found.counters["new_samples"] > 0
