from __future__ import annotations

import io

import numpy as np
from perfetto_rules import Trace, read
from scheduling_traces import rows
from stallscope.converters.model.scheduling import INTERRUPT, LOSS, SWITCH, WAKE_UP, Scheduling
from stallscope.converters.writers.perfetto import wire
from stallscope.converters.writers.perfetto.context import CORES, Context, packet
from stallscope.converters.writers.perfetto.cores import bundles


def traced(scheduling: Scheduling) -> Trace:
    file = io.BytesIO(packet(CORES, wire.text(6, b"")))
    file.seek(0, io.SEEK_END)
    file.writelines(bundles(Context(scheduling, 0)))
    return read(file.getvalue())


def test_many_switches_come_in_bundles_of_bounded_size_by_time() -> None:
    count = 30_000
    tids = np.arange(count + 1) % 7 + 1
    switches = rows(SWITCH, time=np.arange(count) + 1, prev_tid=tids[:-1], next_tid=tids[1:])
    switches = np.concatenate([switches, switches])
    switches["cpu"][count:] = 1
    trace = traced(Scheduling(count + 2, switches=switches))
    assert [each[0] for each in trace.switches[0]] == list(range(count + 1))
    found = [packet.ftrace_events for packet in trace.packets[1:]]
    assert max(len(bundle.compact_sched.switch_timestamp) for bundle in found) <= 1 << 13
    assert [bundle.cpu for bundle in found] == [0, 1] * 4


def test_wake_ups_are_packed_where_the_core_tells_the_waker() -> None:
    switches = rows(SWITCH, time=[10, 20], prev_tid=[1, 2], next_tid=[2, 0])
    wakeups = rows(WAKE_UP, time=[5, 15, 16, 25, 30], tid=[3, 4, 5, 6, 7], waker=[1, 2, 1, 0, 9], cpu=[0, 0, 0, 0, 4])
    wakeups["flags"][3] = INTERRUPT
    trace = traced(Scheduling(50, switches=switches, wakeups=wakeups))
    assert [(time, waker, tid) for time, waker, tid, _ in trace.wakeups] == [
        (5, 1, 3),
        (15, 2, 4),
        (16, 1, 5),
        (25, 0, 6),
        (30, 9, 7),
    ]
    compact = [packet.ftrace_events.compact_sched for packet in trace.packets]
    assert [tid for each in compact for tid in each.waking_pid] == [3, 4, 6]
    assert [flags for each in compact for flags in each.waking_common_flags] == [0, 0, 8]


def test_a_loss_begins_a_bundle() -> None:
    switches = rows(SWITCH, time=[10, 20, 30], prev_tid=[1, 2, 1], next_tid=[2, 1, 0], cpu=[3, 3, 3])
    losses = rows(LOSS, time=[20, 40], count=[2, 1], cpu=[3, 3])
    trace = traced(Scheduling(50, switches=switches, losses=losses))
    assert trace.lost == [(3, 20), (3, -1)]
