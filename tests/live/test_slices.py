"""Times of threads by slices of a trace, against the events of the scheduler and programs whose phases are known."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from commands import run
from stallscope.converters import pprof
from stallscope.converters.model import Profile
from stallscope.converters.model.phases import STATES, phases
from stallscope.converters.model.scheduling import Scheduling
from stallscope.converters.model.states import RUNNABLE_STATES, RUNNING
from stallscope.converters.scan import folder
from stallscope.tracers.kernel.shapes import SHAPES, Shape
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.timeline import Timeline
from test_scan import TRACE_SCAN
from tracing import Trace, Traced

pytestmark = pytest.mark.usefixtures("live")

MS = 1_000_000
SECOND = 1_000 * MS
WORK_US = 30_000
PROGRAM = """
import json, os, subprocess, sys, threading, time

clock = time.monotonic_ns
told = {}

def phase(name, work):
    begin = clock()
    work()
    told[name] = clock() - begin

def compute():
    until = clock() + 2_000_000_000
    while clock() < until:
        sum(range(1000))

def receive():
    mine, other = os.pipe()
    child = subprocess.Popen(["sleep", "2"], stdout=other)
    os.close(other)
    os.read(mine, 1)
    child.wait()

lock = threading.Lock()

def hold(ready):
    with lock:
        ready.set()
        time.sleep(2)

def need():
    ready = threading.Event()
    threading.Thread(target=hold, args=(ready,)).start()
    ready.wait()
    with lock:
        pass

steady = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
phase("cpu", compute)
phase("peer", receive)
phase("lock", need)
steady.kill()
steady.wait()
print(json.dumps({"pid": os.getpid(), "steady": steady.pid, **told}))
"""


def sums(profile: Profile) -> dict[int, list[dict[str, int]]]:
    """ns in each slice of the trace by state (running, runnable, blocked), by thread."""
    found: dict[int, list[dict[str, int]]] = {}
    for each in profile.slices:
        of = found[each.tid] = [defaultdict(int) for _ in range(each.first + each.number)]
        for spent in each.spent:
            state = {"cpu": "running", "cores": "runnable"}.get(spent.kind, "blocked")
            for i, time in enumerate(spent.times, each.first):
                of[i][state] += time
    return found


def from_events(scheduling: Scheduling, length: int) -> dict[int, list[dict[str, int]]]:
    """Times as in `sums`, of the events."""
    found: dict[int, list[dict[str, int]]] = {}
    for phase in phases(scheduling):
        tid = int(scheduling.threads["tid"][phase["thread"]])
        name = STATES[phase["state"]]
        state = "running" if name == RUNNING else "runnable" if name in RUNNABLE_STATES else "blocked"
        begin, end = int(phase["begin"]), int(phase["end"])
        of = found.setdefault(tid, [])
        while begin < end:
            i = begin // length
            of += [defaultdict(int) for _ in range(i + 1 - len(of))]
            upto = min(end, (i + 1) * length)
            of[i][state] += upto - begin
            begin = upto
    return found


def check_closure(traced: Traced) -> None:
    """The slices of a thread add up to its account."""
    by_tid = {each.tid: each for each in traced.profile.threads}
    for tid, of in sums(traced.profile).items():
        account = by_tid[tid]
        whole = {state: sum(each[state] for each in of) for state in ("running", "runnable", "blocked")}
        assert sum(whole.values()) == account.wall
        if not traced.missed:
            blocked = sum(account.blocked.values())
            assert whole == {"running": account.on_cpu, "runnable": account.runnable, "blocked": blocked}
        for each in of[1:-1]:
            assert sum(each.values()) == traced.profile.slices[0].length


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_slices_are_those_of_the_events(trace: Trace, shape: Shape) -> None:
    measures = OffCpu(slice=100 * MS), Timeline()
    traced = trace("work_and_rest", 5, WORK_US, 170_000, measures=measures, shape=shape)
    assert traced.profile.scheduling
    check_closure(traced)
    (length,) = {each.length for each in traced.profile.slices}  # longer ones on a busy machine
    mine, other = sums(traced.profile), from_events(traced.profile.scheduling, length)
    assert mine.keys() == other.keys()
    for tid, of in mine.items():
        assert len(of) == len(other[tid]) > 5
        # An account begins when the thread is found; that it was blocked since the trace began is known from its event.
        of[0]["blocked"] += sum(other[tid][0].values()) - sum(of[0].values())
        for one, two in zip(of, other[tid], strict=True):
            for state in ("running", "runnable", "blocked"):
                # Accounts and events read the clock each on their own: an interrupt may be between. Of a switch that
                # was not seen they do not know when it was: up to a phase of work is in another slice.
                assert abs(one[state] - two[state]) <= length // 100 + traced.missed * WORK_US * 1000


def test_slices_of_a_trace_that_takes_longer(trace: Trace) -> None:
    """Slices whose length doubles: what was counted before is in the longer ones."""
    traced = trace("work_and_rest", 25, 10_000, 40_000, measure=OffCpu(slice=MS))
    (length,) = {each.length for each in traced.profile.slices}
    assert np.log2(length / MS) % 1 == 0
    assert 10 <= max(each.first + each.number for each in traced.profile.slices) <= 21
    check_closure(traced)


def test_threads_that_are_added_up(trace: Trace) -> None:
    """A storm of processes: their sums have slices, too."""
    traced = trace("fork_storm", 6000, 8, measure=OffCpu(slice=200 * MS))
    profile = traced.profile
    counts = {(each.pid, each.tid, each.pid_life, each.tid_life): each for each in profile.threads}
    assert any(each.count > 1 for each in profile.threads)
    lived = sum(sum(sum(spent.times) for spent in each.spent) for each in profile.slices)
    wall = sum(each.wall for each in counts.values())
    assert abs(lived - wall) <= wall // 50


def test_each_process_has_its_phases(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    kept = tmp_path / "scan.d"
    ended = run("-o", str(kept), "--", "/usr/bin/python3", str(program), command=TRACE_SCAN).check_succeeded()
    (line,) = [line for line in ended.out.splitlines() if line.startswith('{"pid"')]
    truth = json.loads(line)
    made = json.loads((kept / folder.SUMMARY).read_text())
    rows = {pid: row for row in made["processes"] for pid in row["pids"]}
    slices = rows[truth["pid"]]["slices"]
    for kind in ("cpu", "peer", "lock"):
        queued = sum(slices["times_ns"].get("cores", []))
        assert abs(sum(slices["times_ns"][kind]) - truth[kind]) <= queued + 0.2 * truth[kind], kind
    # Beside others that want the cores it waits for one.
    kinds = [each["kind"] for each in slices["phases"]]
    assert kinds[0] in ("cpu", "cores")
    assert kinds[1:] == ["peer", "lock"]
    for each in slices["phases"][1:]:
        assert abs(each["end_ns"] - each["begin_ns"] - truth[each["kind"]]) <= 2 * slices["length_ns"]
    assert "it waits for its peer (" in slices["told"]
    assert "then for" in ended.out
    assert "Over time, a letter for each" in ended.out
    steady = rows[truth["steady"]]["slices"]
    assert set(steady["kinds"][2:]) == {"peer"}
    assert steady["phases"] == []
    (child,) = [each for each in made["processes"] if each["name"] == "sleep"]
    assert child["slices"]["first"] > 0
    assert (child["slices"]["first"] + len(child["slices"]["kinds"])) < len(slices["kinds"])
    assert len(child["slices"]["kinds"]) * slices["length_ns"] >= 2 * SECOND
    with open(folder.capture_of(str(kept)), "rb") as file:
        profile = pprof.load(file)
    walls = {(each.pid, each.tid): each.wall for each in profile.threads}
    for each in profile.slices:
        assert sum(sum(spent.times) for spent in each.spent) == walls[each.pid, each.tid]
    again = run("--from", str(kept), command=TRACE_SCAN).check_succeeded()
    assert "Over time, a letter for each" in again.out
