"""Intervals, and one trace after the other, of what is summed in tables."""

from __future__ import annotations

import pytest
from stallscope.tracers.engines.ebpf.measures.offcpu import OffCpuCollector
from stallscope.tracers.engines.ebpf.measures.summed import Summed
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.kernel.libbpf import library
from stallscope.tracers.kernel.records import ORIGIN, WAIT_SUM
from stallscope.tracers.measures.offcpu import OffCpu


def put(measure: Summed, tid: int) -> None:
    """Puts as a program would, into the table of the present interval."""
    assert measure._table
    key, value = ORIGIN.pack(1, 2, 0, tid, 7, 0, 1), WAIT_SUM.pack(*[5] * 7)
    assert library().bpf_map_update_elem(measure._table._tables[measure.slot].fd, key, value, 0) == 0


def taken(measure: Summed) -> dict[int, int]:
    """Waits by tid."""
    measure.drain()
    return {origin.tid: values[0] for origin, values in measure.totals().take()}


def test_an_interval_and_a_trace_begin_with_nothing(loaded: Object) -> None:
    measure = OffCpuCollector(OffCpu())
    for _ in range(2):
        measure.open(loaded, 64)
        try:
            assert measure.slot == 0
            put(measure, 3)
            measure.drain()
            put(measure, 3)
            put(measure, 4)
            assert taken(measure) == {3: 10, 4: 5}
            put(measure, 5)
            measure.drain()
            measure.next()
            assert measure.slot == 1
            put(measure, 6)
            assert taken(measure) == {6: 5}
            put(measure, 7)
            measure.drain()
        finally:
            measure.close()


def test_a_measure_says_how_its_values_are_added_up() -> None:
    with pytest.raises(NotImplementedError):
        Summed().ways()
