"""The measure around the recorder. With real events: tests/live/test_timeline.py."""

from __future__ import annotations

import mmap
import os
import struct
from typing import cast

import numpy as np
import pytest
from stallscope.converters.model.scheduling import EXIT
from stallscope.tracers.engines.ebpf.measures.protocol import Ended
from stallscope.tracers.engines.ebpf.measures.timeline import SLOT, TimelineCollector
from stallscope.tracers.kernel import perf_events, records
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.measures.timeline import Timeline

ENDED = Ended(0, 10, ())


def exit_record(end: int, cpu: int, tid: int, start: int) -> bytes:
    head = struct.pack("<IIQ16s", records.RECORD_EXIT, cpu, end, b"name")
    return head + records.pack_thread((tid, 5), 1, "other", records.ON_CPU, start)


@pytest.mark.parametrize(
    ("cores", "size", "slots"),
    [(1, 64 << 20, 1 << 20), (2, 64 << 20, 1 << 19), (3, 64 << 20, 1 << 18), (2, 1, 1 << 12), (512, 64 << 20, 1 << 12)],
)
def test_cores_share_the_memory(cores: int, size: int, slots: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf_events, "online_cpus", lambda: list(range(cores)))
    monkeypatch.setattr(perf_events, "possible_cpus", lambda: 600)
    sizes = TimelineCollector(Timeline(buffer_bytes=size)).sizes(1)
    assert sizes == {"timeline_events": cores * slots, "timeline_rings": 600}
    assert slots & (slots - 1) == 0
    assert sizes["timeline_events"] * SLOT <= max(size, cores * SLOT << 12)


def test_it_has_no_rows_and_looks_often() -> None:
    measure = TimelineCollector(Timeline())
    assert measure.rows(ENDED) == []
    assert measure.columns == ()
    assert measure.knobs() == {"measure_timeline": 1}
    assert measure.period == 0.02
    assert measure.lost_so_far({}) == 0
    assert measure.remarks() == []


def test_an_exit_is_told_twice_and_counted_once() -> None:
    measure = TimelineCollector(Timeline())
    for end, start in ((100, 7), (120, 7), (300, 200)):
        assert measure.on_record(exit_record(end, 3, 11, start)) is False, "others want it, too"
    assert measure.on_record(struct.pack("<II", records.RECORD_EXEC, 1) + bytes(24)) is False
    assert np.frombuffer(bytes(measure._exits), EXIT).tolist() == [(100, 3, 11, 5), (300, 3, 11, 5)]


def test_an_interval_has_its_own_exits_and_the_next_one_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interval is put together in a process of its own: the tracer goes on with the rings."""
    monkeypatch.setattr(perf_events, "possible_cpus", lambda: 1)
    measure = TimelineCollector(Timeline())
    events, rings = mmap.mmap(-1, SLOT << 12), mmap.mmap(-1, SLOT)
    measure._memory = [events, rings]
    for end in (100, 200, 300):
        measure.on_record(exit_record(end, 0, 11, end - 10))
    measure.read(cast(Object, None))
    measure.ends(200)
    pid = os.fork()
    if not pid:
        found = measure.recorded(Ended(50, 200, ())).scheduling.exited["time"].tolist()
        os._exit(int(found != [50]))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    measure.next()
    assert np.frombuffer(bytes(measure._exits), EXIT)["time"].tolist() == [200, 300]
    assert measure.recorded(Ended(200, 400, ())).scheduling.exited["time"].tolist() == [0, 100]
    assert events.closed
