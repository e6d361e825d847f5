"""All of the time of threads: on + blocked + runnable is the wall time, and the samples sum to the same."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from commands import Tracer, load, run, traced_run
from paths import PATHS
from runner import FOLDER, Workload
from stallscope.converters.model import Profile, ThreadTimes
from stallscope.tracers.engines.ebpf.probes import KERNEL_BTF
from stallscope.tracers.kernel.shapes import SHAPES, Shape
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu
from tracing import RUNNABLE, Trace, Traced

pytestmark = pytest.mark.usefixtures("live")

TRACE_WALL = str(Path(sys.executable).with_name("trace-wall"))
HZ = 499
WORKLOADS: list[tuple[object, ...]] = [
    ("sleeps", 10),
    ("futex_pingpong", 3000),
    ("pipe_chain", 4, 1000),
    ("spinner", 500),
    ("two_spinners", 700),
    ("shares", 700),
    ("page_faults", 100),
    ("fork_storm", 200, 1),
    ("fork_storm", 200, 8),
    ("fork_storm", "--exec", 100, 4),
    ("hostile",),
    ("demo", 500),
    ("call_paths", "near", 1),
    ("exec_chain", 21, 2),
    *((name, 400) for name in PATHS),
]


def wall(frequency: int = HZ) -> tuple[OffCpu, OnCpu]:
    return OffCpu(time="wall"), OnCpu(frequency, time="wall")


def samples_of(profile: Profile) -> dict[tuple[int, int], dict[str, int]]:
    """ns by process and thread, and by state."""
    sums: defaultdict[tuple[int, int], defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for sample in profile.samples:
        who = int(str(sample.label("pid"))), int(str(sample.label("tid")))
        sums[who][str(sample.label("state"))] += sample.values[0]
    return {who: dict(states) for who, states in sums.items()}


def threads_of(profile: Profile) -> dict[tuple[int, int], list[ThreadTimes]]:
    """A thread id can come back in a storm."""
    threads: defaultdict[tuple[int, int], list[ThreadTimes]] = defaultdict(list)
    for times in profile.threads:
        threads[times.pid, times.tid].append(times)
    return threads


def check_closure(traced: Traced) -> None:
    seen = samples_of(traced.profile)
    threads = threads_of(traced.profile)
    assert seen.keys() <= threads.keys()
    for who, several in threads.items():
        length = sum(times.wall for times in several)
        parts = sum(times.on_cpu + times.runnable + sum(times.blocked.values()) for times in several)
        assert parts == pytest.approx(length, rel=0.01), several
        states = seen.get(who, {})
        assert states.get("running", 0) == sum(times.on_cpu for times in several)
        # Of a switch that the kernel did not report, the parts on both sides may be split at another moment.
        bound = 0.001 * length if traced.unseen or traced.missed else 0
        assert abs(sum(states.values()) - parts) <= bound, (states, several)
        runnable = sum(states.get(state, 0) for state in RUNNABLE)
        assert abs(runnable - sum(times.runnable for times in several)) <= bound, (states, several)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: "-".join(map(str, workload)))
def test_closure(trace: Trace, workload: tuple[object, ...]) -> None:
    traced = trace(*workload, measures=wall())
    assert traced.profile.threads
    check_closure(traced)
    for kind in ("samples", "intervals", "stacks", "threads"):
        assert traced.profile.lost[kind] == 0, kind


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_closure_in_every_shape(trace: Trace, shape: Shape) -> None:
    options: dict[str, Any] = {"btf": KERNEL_BTF} if shape.raw else {}
    traced = trace("shares", 1000, measures=wall(), shape=shape, **options)
    check_closure(traced)
    (times,) = traced.profile.threads
    expected = HZ * times.on_cpu / 1e9
    taken = sum(s.values[4] for s in traced.profile.samples if s.stack[-1].name != "[not sampled]")
    assert taken == pytest.approx(expected, rel=0.1, abs=4 * expected**0.5 + 1)
    assert any(s.values[4] for s in traced.samples("spin_three"))


def test_two_spinners_share_a_core(trace: Trace) -> None:
    """Each runs half of what both ran, and waits for the core while the other one runs."""
    traced = trace("two_spinners", 3000, measures=wall())
    check_closure(traced)
    truths = {truth["tid"]: truth for truth in traced.truth["threads"]}
    running = {tid: time_in(traced, tid, ("running",)) for tid in truths}
    for tid, truth in truths.items():
        waiting = time_in(traced, tid, RUNNABLE)
        # What others on this core take makes both wait.
        others = truth["wall_ns"] - sum(running.values())
        assert running[tid] / sum(running.values()) == pytest.approx(0.5, abs=0.02)
        assert (waiting - max(others, 0)) / sum(running.values()) == pytest.approx(0.5, abs=0.02), (truths, running)


def time_in(traced: Traced, tid: int, states: tuple[str, ...]) -> int:
    """ns in these states while it spun."""
    return sum(s.values[0] for s in traced.samples("spin", tid) if s.label("state") in states)


def test_shares_of_running_and_waiting_functions(trace: Trace) -> None:
    """One picture has both: functions that compute, and functions that wait."""
    traced = trace("demo", 1500, measures=wall(997))
    (worker,) = {times.tid for times in traced.profile.threads if times.thread == "worker"}
    times = traced.thread(worker)
    inside = sum(s.values[0] for s in traced.samples("cudaGetDeviceProperties", worker))
    everything = sum(s.values[0] for s in traced.profile.samples if s.label("tid") == worker)
    assert everything == pytest.approx(times.wall, rel=0.01)
    assert 0 < inside < everything
    states = {str(s.label("state")) for s in traced.samples("topk", worker)}
    assert "running" in states
    assert states & {"interruptible", "uninterruptible"}


def test_what_a_thread_does_after_it_began_to_exit(tmp_path: Path) -> None:
    """The thread frees the process's memory, and the kernel tells of the process's end before the thread is gone."""
    path, spent = tmp_path / "x.pb.gz", tmp_path / "spent"
    program = (
        "import os, sys; pid = os.posix_spawn(sys.argv[2], sys.argv[2:], {}); usage = os.wait4(pid, 0)[2]\n"
        "open(sys.argv[1], 'w').write(f'{pid} {usage.ru_utime + usage.ru_stime}')"
    )
    words = [sys.executable, "-c", program, str(spent), str(FOLDER / "last_thread"), "512"]
    run("-o", path, "--", *words, command=TRACE_WALL).check_succeeded()
    pid, seconds = spent.read_text().split()
    profile = load(path)
    states = samples_of(profile)
    threads = [times for times in profile.threads if times.pid == int(pid)]
    assert len(threads) == 2
    for times in threads:
        assert sum(states[times.pid, times.tid].values()) == pytest.approx(times.wall, rel=0.001, abs=100_000)
    assert sum(times.on_cpu for times in threads) / 1e9 == pytest.approx(float(seconds), rel=0.1)


def test_a_whole_host_with_idle_cores(tmp_path: Path) -> None:
    """The stacks of every thread that was there from the beginning to the end sum to the length of the trace."""
    path = tmp_path / "host.pb.gz"
    with Tracer("-a", "-d", 2, "-o", path, command=TRACE_WALL) as tracer:
        tracer.finish().check_succeeded()
    profile = load(path)
    whole = [times for times in profile.threads if times.wall > 0.999 * profile.duration_ns and not times.exited]
    assert len(whole) > 10
    seen = samples_of(profile)
    for times in whole:
        assert sum(seen[times.pid, times.tid].values()) == pytest.approx(times.wall, rel=0.01)
    assert 0 not in {times.pid for times in profile.threads}


def test_command(tmp_path: Path) -> None:
    path = tmp_path / "out.pb.gz"
    with (
        Workload("shares", 1000, linger=True) as workload,
        Tracer("-p", workload.pid, "-F", 499, "-o", path, command=TRACE_WALL) as tracer,
    ):
        finished, truth = traced_run(workload, tracer)
    profile = load(path)
    assert [(column.name, column.aggregate) for column in profile.value_types] == [
        ("wall", "sum"),
        ("count", "sum"),
        ("min", "min"),
        ("max", "max"),
        ("samples", "sum"),
    ]
    (times,) = profile.threads
    assert profile.total("wall") == pytest.approx(times.wall, rel=0.01)
    running = sum(s.values[0] for s in profile.samples if s.label("state") == "running")
    (thread,) = truth["threads"]
    assert running >= thread["cpu_ns"]
    assert "shares" in finished.out


def test_measures_may_be_used_again(trace: Trace) -> None:
    measures = OffCpu(time="wall"), OnCpu(HZ, time="wall")
    for _ in range(2):
        traced = trace("shares", 100, measures=measures)
        assert {sample.label("pid") for sample in traced.profile.samples} == {traced.truth["pid"]}
        assert not traced.profile.lost["stacks"]
