from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from perfetto_rules import Trace, read
from scheduling_traces import HOSTILE, rows, run
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.base.text import printable
from stallscope.converters.model import Frame, Module, Profile, ValueType
from stallscope.converters.model.cores import tenants
from stallscope.converters.model.scheduling import BLOCKED, LOSS, OPEN, SWITCH, THREAD, WAKE_UP, Scheduling, keep
from stallscope.converters.writers import output
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.perfetto import writer

BOOT, START = 10**12, 1_790_000_000 * 10**9


def traced(scheduling: Scheduling, title: str = "", **about: Any) -> Trace:
    file = io.BytesIO()
    profile = Profile([ValueType("off-cpu", "nanoseconds")], start_ns=START, scheduling=scheduling, **about)
    writer.write(profile, file, WriteOptions(title=title))
    return read(file.getvalue())


def test_the_official_definitions_read_all_events_again() -> None:
    scheduling = replace(run(3_000, seed=4).scheduling(), boottime=BOOT)
    trace = traced(scheduling)
    chains = tenants(scheduling)
    for cpu in range(4):
        first, *mine = chains[chains["cpu"] == cpu]
        expected = [(BOOT + each["time"], each["prev_tid"], each["prev_state"], each["next_tid"]) for each in mine]
        assert trace.switches[cpu] == [(BOOT, 0, 0, first["next_tid"]), *expected]
    woken = scheduling.wakeups[scheduling.wakeups["flags"] == 0]
    expected = [(BOOT + each["time"], each["waker"], each["tid"], each["target_cpu"]) for each in woken]
    assert sorted(trace.wakeups) == sorted(expected)
    made, ended = ([(BOOT + e["time"], e["tid"]) for e in each] for each in (scheduling.created, scheduling.exited))
    assert len(made) > 10 < len(ended)
    assert [(time - 500, tid) for time, tid in sorted(trace.others["sched_wakeup_new"])] == made
    assert sorted(trace.others["task_newtask"]) == made
    assert sorted(trace.others["sched_process_exit"]) == ended
    assert len(trace.others["sched_process_free"]) == len(ended)


def test_waits_are_slices_with_their_stacks() -> None:
    scheduling = replace(run(3_000, seed=4).scheduling(), boottime=BOOT)
    trace = traced(scheduling)
    waits = [each for each in trace.slices if each.track != 1]
    assert len(waits) == len(scheduling.blocked) > 500
    found = {(trace.tracks[each.track].thread.tid, each.begin): each for each in waits}
    for span in scheduling.blocked:
        slice_ = found[int(span["tid"]), BOOT + int(span["begin"])]
        end = int(span["woken"]) or int(span["end"])
        assert slice_.end == (None if end == OPEN else BOOT + end)
        stack = scheduling.stacks[span["stack"]] if span["stack"] >= 0 else ()
        assert slice_.stack == tuple(frame.name for frame in stack)
        state = {1: "interruptible", 2: "uninterruptible"}[int(span["state"])]
        assert slice_.notes == {"state": state}
        assert slice_.name in (("ioctl: __mutex_lock", "read: pipe_read") if stack else (state,))


def test_clocks_machine_and_losses_are_told() -> None:
    scheduling = Scheduling(5_000, boottime=BOOT, monotonic=7, kernel="6.1.0-18-amd64", kept="newest", dropped=3)
    scheduling.losses = rows(LOSS, time=[100], count=[12], cpu=[2])
    trace = traced(scheduling, host="node", title="a title", lost={"stacks cut short": 1}, comments=["said"])
    clocks = {clock.clock_id: clock.timestamp for clock in trace.packets[0].clock_snapshot.clocks}
    assert clocks == {6: BOOT, 3: 7, 1: START}
    assert trace.packets[1].system_info.utsname.release == "6.1.0-18-amd64"
    (recording,) = trace.slices
    assert (recording.name, recording.begin, recording.end) == ("a title", BOOT, BOOT + 5_000)
    assert recording.notes == {
        "host": "node",
        "kernel": "6.1.0-18-amd64",
        "lost: stacks cut short": "1",
        "lost: scheduler events": "12",
        "lost: older scheduler events beyond the limit": "3",
        "comment 1": "said",
    }
    assert trace.lost == [(2, -1)]


@pytest.mark.parametrize(
    ("kernel", "told"), [("", "4.14"), ("4.9.1", "4.14"), ("what", "4.14"), ("5.15.0-x", "5.15.0-x")]
)
def test_the_viewer_knows_what_the_bits_of_states_mean(kernel: str, told: str) -> None:
    assert traced(Scheduling(1, kernel=kernel)).packets[1].system_info.utsname.release == told


def test_without_boottime_the_clock_is_the_time_of_day() -> None:
    trace = traced(Scheduling(10))
    assert trace.packets[0].timestamp == START
    assert trace.slices[0].end == START + 10


def test_a_single_event() -> None:
    switches = rows(SWITCH, time=[40], cpu=[5], prev_tid=[7], next_tid=[0], prev_state=[1])
    threads = rows(THREAD, tid=[7], tgid=[7])
    trace = traced(Scheduling(90, switches=switches, threads=threads, names=["one"], boottime=BOOT))
    assert trace.switches == {5: [(BOOT, 0, 0, 7), (BOOT + 40, 7, 1, 0)]}
    assert trace.processes == {7: "one"}
    assert trace.threads == [(BOOT, 7, 7, "one")]


def test_hostile_names_are_printable_text() -> None:
    frame = Frame(HOSTILE, "native", Module(HOSTILE, HOSTILE, 64), 8, HOSTILE, 3)
    switches = rows(SWITCH, time=[40, 50], cpu=[0, 0], prev_tid=[7, 0], next_tid=[0, 7], prev_state=[1, 0])
    blocked = rows(BLOCKED, begin=[40], end=[50], tid=[7], stack=[0], state=[1])
    made = Scheduling(90, switches=switches, threads=rows(THREAD, tid=[7], tgid=[7]), names=[HOSTILE], blocked=blocked)
    made.stacks, made.kernel = [(frame,)], f"6.1{HOSTILE}"
    trace = traced(made, title=HOSTILE, host=HOSTILE, lost={HOSTILE: 1}, comments=[HOSTILE])
    assert trace.processes == {7: printable(HOSTILE)}
    assert trace.names[7] == {printable(HOSTILE)}
    assert [each.stack for each in trace.slices if each.track != 1] == [(printable(HOSTILE),)]
    assert trace.slices[0].name == printable(HOSTILE)


def test_who_is_not_known_is_nobody_else() -> None:
    """A recording of thread 7 alone: whoever it leaves the core to is not the one who has it when it comes back."""
    times = {
        "time": [40, 60, 80],
        "cpu": [3, 3, 3],
        "prev_tid": [7, 99, 7],
        "next_tid": [98, 7, 0],
        "prev_state": [2, 0, 1],
    }
    wakeups = rows(WAKE_UP, time=[50], cpu=[3], target_cpu=[3], tid=[7], waker=[97])
    made = Scheduling(90, switches=rows(SWITCH, **times), wakeups=wakeups, threads=rows(THREAD, tid=[7], tgid=[7]))
    made.names, made.every_switch = ["one"], False
    trace = traced(replace(made, boottime=BOOT))
    nobody = (1 << 22) + 3
    assert trace.switches[3] == [
        (BOOT, 0, 0, 7),
        (BOOT + 40, 7, 2, nobody),
        (BOOT + 60, nobody, 0, 7),
        (BOOT + 80, 7, 1, nobody),
    ]
    assert trace.names[nobody] == {"[not traced]"}
    assert trace.wakeups == [(BOOT + 50, 97, 7, 3)]


def test_losses_are_said_where_they_are() -> None:
    switches = rows(SWITCH, time=[40, 60], cpu=[0, 0], prev_tid=[7, 8], next_tid=[8, 7], prev_state=[1, 2])
    made = Scheduling(
        90, switches=switches, threads=rows(THREAD, tid=[7, 8], tgid=[7, 7]), names=["one"], boottime=BOOT
    )
    assert traced(made).lost == []
    made.losses = rows(LOSS, time=[60], count=[5], cpu=[0])
    trace = traced(made)
    assert trace.lost == [(0, BOOT + 60)]
    lost = (1 << 22) + 1024
    assert trace.switches[0] == [
        (BOOT, 0, 0, 7),
        (BOOT + 40, 7, 1, 8),
        (BOOT + 40, 8, 0x200, lost),
        (BOOT + 60, lost, 0, 8),
        (BOOT + 60, 8, 2, 7),
    ]
    assert trace.names[lost] == {"[events lost]"}


@pytest.mark.parametrize("kept", ["newest", "first"])
def test_a_cut_recording_keeps_the_rules(kept: Any) -> None:
    scheduling = replace(run(3_000, seed=6).scheduling(), boottime=BOOT)
    cut = keep(scheduling, 500, kept)
    trace = traced(cut)
    assert trace.slices[0].begin == BOOT + cut.begin
    assert trace.slices[0].end == BOOT + cut.end
    assert min(each.begin for each in trace.slices) == BOOT + cut.begin


def test_a_core_beyond_the_viewers_limit_is_an_error() -> None:
    switches = rows(SWITCH, time=[40], cpu=[1024], prev_tid=[7], next_tid=[0])
    with pytest.raises(StallscopeError, match="1024") as error:
        traced(Scheduling(90, switches=switches))
    assert error.value.remedy


def test_a_profile_without_scheduler_events_is_refused(tmp_path: Any) -> None:
    path = tmp_path / "x.pftrace"
    with pytest.raises(StallscopeError, match="no scheduler events") as error:
        output.write(Profile([ValueType("off-cpu", "nanoseconds")]), path)
    assert error.value.exit_code == 2
    assert not path.exists()


def test_random_recordings_with_losses_keep_the_rules() -> None:
    for seed in range(5):
        scheduling = replace(run(800, seed=seed, cores=2 + seed).scheduling(), boottime=BOOT)
        choice = np.random.default_rng(seed)
        for name in ("switches", "wakeups", "created", "exited"):
            events = getattr(scheduling, name)
            setattr(scheduling, name, events[choice.random(len(events)) < 0.7])
        times = np.sort(choice.integers(0, scheduling.end, 20))
        scheduling.losses = rows(LOSS, time=times, count=[1] * 20, cpu=choice.integers(0, 3, 20))
        scheduling.every_switch = seed % 2 == 0
        trace = traced(scheduling)
        assert sum(map(len, trace.switches.values())) >= len(scheduling.switches)
