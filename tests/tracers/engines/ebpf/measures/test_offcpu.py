"""Wishes of the measure to the kernel side. Its rows: tests/tracers/engines/ebpf/test_assemble.py."""

from __future__ import annotations

import pytest
from stallscope.converters.model import ValueType
from stallscope.tracers.engines.ebpf.measures.offcpu import OffCpuCollector
from stallscope.tracers.engines.ebpf.measures.protocol import SCHEDULER
from stallscope.tracers.kernel.records import STATES
from stallscope.tracers.measures.offcpu import FOREVER, OffCpu

ALL = (1 << 32) - 1


def bits(*states: str) -> int:
    return sum(1 << STATES.index(state) for state in states)


@pytest.mark.parametrize(
    ("states", "mask"),
    [
        (None, ALL),
        ({"interruptible", "stopped"}, bits("interruptible", "stopped")),
        ({"runnable-preempted", "idle"}, bits("preempted", "idle")),
        ({"runnable-woken"}, ALL),  # the second part of any wait
    ],
)
def test_knobs(states: set[str] | None, mask: int) -> None:
    measure = OffCpuCollector(OffCpu(5, 7, None if states is None else frozenset(states)))
    assert measure.knobs() == {"measure_offcpu": 1, "wait_objects": 1, "min_wait": 5, "max_wait": 7, "state_mask": mask}


def test_defaults() -> None:
    measure = OffCpuCollector(OffCpu())
    assert measure.knobs() == {
        "measure_offcpu": 1,
        "wait_objects": 1,
        "min_wait": 0,
        "max_wait": FOREVER,
        "state_mask": ALL,
    }
    assert measure.programs == SCHEDULER
    assert measure.sizes(4096) == {}
    assert [column.name for column in measure.columns] == ["off-cpu", "count", "min", "max"]
    assert measure.losses() == {"intervals": 0, "ns of intervals": 0}
    assert measure.lost_so_far({"lost_waits": 3}) == 3


def test_the_column_of_time_may_be_shared() -> None:
    assert OffCpuCollector(OffCpu(time="wall")).columns[0] == ValueType("wall", "nanoseconds")
