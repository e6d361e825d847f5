"""Totals, counts and states against workloads that measure themselves (tests/workloads/README.md)."""

from __future__ import annotations

from typing import Any

import pytest
from stallscope.converters.model import ThreadTimes
from stallscope.tracers.engines.ebpf.probes import KERNEL_BTF
from stallscope.tracers.kernel.shapes import SHAPES, Shape
from stallscope.tracers.measures.offcpu import OffCpu
from tracing import RUNNABLE, Trace, Traced

MS = 1_000_000


def near(value: int, truth: int) -> bool:
    """The bound that the project promises: 3 % or 2 ms."""
    return abs(value - truth) <= slack(truth)


def slack(truth: int) -> float:
    return max(0.03 * truth, 2 * MS)


def check_waits(traced: Traced, *, per_thread: bool = True) -> None:
    """Every function's time and count against the truth.

    The truth is the time around the system call: it holds the call's own CPU time, preemptions, and what the hypervisor
    took, too.
    A wait that the kernel did not report has no stack; such are counted, and none is missing otherwise.
    """
    for wait in traced.truth["waits"]:
        tid = wait["tid"] if per_thread else None
        function, ns = wait["function"], wait["ns"]
        assert traced.blocks(function, tid) <= wait["blocks"] <= traced.blocks(function, tid) + traced.unseen, function
        busy = sum(t["cpu_ns"] for t in traced.truth["threads"] if tid in (None, t["tid"])) + traced.preempted(tid)
        waited = traced.waited(function, tid)
        busy += traced.stolen
        assert ns - busy - slack(ns) <= waited <= ns + slack(ns), (function, waited, busy, wait)


def check_lost(traced: Traced) -> None:
    for kind in ("intervals", "stacks", "threads", "exit and exec records", "address space records"):
        assert traced.profile.lost[kind] == 0, kind


def check_threads(traced: Traced) -> None:
    """On-CPU and runnable time of every thread against the kernel's own accounts.

    Those are taken a moment before sched_switch is reported, and leave out what the hypervisor and interrupts took.
    """
    for times in traced.profile.threads:
        assert sum_of(times) == pytest.approx(times.wall, rel=0.01)
        check_parts(traced, times)
    for tid, (on_cpu, runnable) in traced.kernel.items():
        times = traced.thread(tid)
        moments = times.switches * MS // 10
        assert on_cpu - slack(on_cpu) <= times.on_cpu + moments, (times, on_cpu)
        assert times.on_cpu <= on_cpu + slack(on_cpu) + moments + traced.stolen, (times, on_cpu, traced.stolen)
        assert abs(times.runnable - runnable) <= slack(runnable) + moments, (times, runnable)
    for truth in traced.truth["threads"]:
        times = traced.thread(truth["tid"])
        moments = times.switches * MS // 10
        # The thread's own account leaves out how it began and how it ended.
        assert truth["cpu_ns"] - slack(truth["cpu_ns"]) <= times.on_cpu + moments
        assert truth["runnable_ns"] - slack(truth["runnable_ns"]) <= times.runnable + moments


def check_parts(traced: Traced, times: ThreadTimes) -> None:
    """The samples of a thread are its account: what it was blocked, and what it waited for a core."""
    samples = [s for s in traced.profile.samples if (s.label("pid"), s.label("tid")) == (times.pid, times.tid)]
    runnable = sum(s.values[0] for s in samples if s.label("state") in RUNNABLE)
    blocked = sum(s.values[0] for s in samples if s.label("state") not in RUNNABLE)
    # A reconstructed wait may be split at another moment.
    bound = 0.001 * times.wall if traced.unseen or traced.missed else 0
    assert abs(runnable - times.runnable) <= bound, (runnable, times)
    assert abs(blocked - sum(times.blocked.values())) <= bound, (blocked, times)


def sum_of(times: ThreadTimes) -> int:
    return times.on_cpu + times.runnable + sum(times.blocked.values())


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_sleeps(trace: Trace, shape: Shape) -> None:
    options: dict[str, Any] = {"btf": KERNEL_BTF} if shape.raw else {}
    traced = trace("sleeps", 10, shape=shape, **options)
    check_waits(traced)
    check_threads(traced)
    check_lost(traced)
    states = {s.label("state") for s in traced.samples("sleep_10ms")} - set(RUNNABLE)
    assert states == {"interruptible"}
    waits = [s for s in traced.samples("sleep_25ms") if s.label("state") == "interruptible"]
    blocked = max(waits, key=lambda sample: sample.values[1])  # the first can be cut: nobody has seen its beginning
    names = [frame.name for frame in blocked.stack]
    assert names.index("main") < names.index("sleep_25ms") < names.index("do_nanosleep") < names.index("__schedule")
    assert names[-1] == "__schedule"
    assert blocked.values[2] >= 25 * MS
    assert blocked.values[3] >= blocked.values[2]


def test_futex_pingpong(trace: Trace) -> None:
    traced = trace("futex_pingpong", 3000)
    check_waits(traced)
    check_threads(traced)
    check_lost(traced)


def test_pipe_chain(trace: Trace) -> None:
    traced = trace("pipe_chain", 4, 1000)
    check_waits(traced)
    check_threads(traced)
    check_lost(traced)
    assert not traced.blocks("write_token")


def test_spinner_is_never_blocked(trace: Trace) -> None:
    traced = trace("spinner", 500)
    (truth,) = traced.truth["threads"]
    assert traced.blocks("spin") == 0
    check_threads(traced)
    # Outside of spin() it waits for its gate and for the end.
    begin_to_end = sum(s.values[0] for s in traced.samples("spin") if s.label("state") not in RUNNABLE)
    assert begin_to_end == 0
    # A switch that the kernel did not report leaves a wait of unknown kind.
    unknown = [s for s in traced.profile.samples if (s.label("tid"), s.label("state")) == (truth["tid"], "other")]
    assert traced.missed or not unknown
    waited = traced.preempted(truth["tid"]) + sum(s.values[0] for s in unknown)
    assert near(waited, truth["runnable_ns"]), (truth, traced.thread(truth["tid"]), traced.missed)


def test_two_spinners_on_one_core_are_runnable(trace: Trace) -> None:
    traced = trace("two_spinners", 1000)
    check_threads(traced)
    for truth in traced.truth["threads"]:
        waiting = [s for s in traced.samples("spin", truth["tid"]) if s.label("state") == "runnable-preempted"]
        assert near(sum(s.values[0] for s in waiting), truth["runnable_ns"])
        assert truth["runnable_ns"] > 0.3 * truth["wall_ns"]


@pytest.mark.parametrize("arguments", [(200, 1), ("--exec", 200, 1), ("--exec", 100, 4)])
def test_short_lived_children_keep_their_names(trace: Trace, arguments: tuple[object, ...]) -> None:
    traced = trace("fork_storm", *arguments)
    check_waits(traced, per_thread=False)
    check_lost(traced)
    children, exec_mode = int(str(arguments[-2])), arguments[0] == "--exec"
    function, process = ("exec_child_sleep", "storm_child") if exec_mode else ("child_sleep", "fork_storm")
    sleeping = [s for s in traced.samples(function) if s.label("state") == "interruptible"]
    # One whose core the hypervisor took for longer than it wanted to sleep did not sleep.
    (asleep,) = [wait["blocks"] for wait in traced.truth["waits"] if wait["function"] == function]
    assert asleep - traced.unseen <= len({s.label("pid") for s in sleeping}) <= asleep
    assert {s.label("process") for s in sleeping} == {process}
    for times in traced.profile.threads:
        assert sum_of(times) == pytest.approx(times.wall, rel=0.01)
    assert sum(times.exited for times in traced.profile.threads) >= children


def test_demo_shows_the_lock(trace: Trace) -> None:
    """The model case with one process: who waits for whom is the same, only less long."""
    traced = trace("demo", 500)
    (worker,) = {t.tid for t in traced.profile.threads if t.thread == "worker"}
    inside = traced.samples("cudaGetDeviceProperties", worker)
    assert inside
    for sample in inside:
        names = [frame.name for frame in sample.stack]
        assert names.index("worker") < names.index("topk") < names.index("cudaGetDeviceProperties")
    assert any("ioctl" in frame.name for sample in inside for frame in sample.stack if frame.kind == "kernel")
    check_lost(traced)


def test_open_intervals_are_counted_up_to_the_end(trace: Trace) -> None:
    """The parent of the chain sleeps for the whole trace; so do processes that wait at their gate."""
    traced = trace("sleeps", 1, duration=0.5)
    for times in traced.profile.threads:
        assert sum_of(times) == pytest.approx(times.wall, rel=0.01)


def test_filters(trace: Trace) -> None:
    shortest = trace("sleeps", 5, measure=OffCpu(shortest=5 * MS))
    assert shortest.blocks("sleep_10ms") == 10
    # On a busy machine a short sleep can wait long for a core: then it belongs here.
    for stack in {sample.stack for sample in shortest.samples("sleep_1ms")}:
        assert sum(s.values[3] for s in shortest.profile.samples if s.stack == stack) >= 5 * MS
    longest = trace("sleeps", 5, measure=OffCpu(longest=5 * MS))
    assert longest.blocks("sleep_1ms") > 0
    assert longest.blocks("sleep_10ms") == 0
    assert all(sample.values[3] <= 5 * MS for sample in longest.profile.samples)
    runnable = trace("two_spinners", 300, measure=OffCpu(states=frozenset({"runnable-preempted"})))
    assert {s.label("state") for s in runnable.profile.samples} == {"runnable-preempted"}


def test_one_kind_of_stacks(trace: Trace) -> None:
    user = trace("sleeps", 2, kernel_stacks=False)
    assert user.blocks("sleep_10ms") == 4
    assert not any(frame.kind == "kernel" for s in user.profile.samples for frame in s.stack)
    kernel = trace("sleeps", 2, user_stacks=False)
    assert kernel.blocks("do_nanosleep") == 14
    assert not any(frame.kind == "native" for s in kernel.profile.samples for frame in s.stack)


@pytest.mark.parametrize("workload", [("demo", 500), ("pipe_chain", 4, 500), ("fork_storm", "--exec", 50, 4)])
def test_recognised_kernel_stacks_are_right(trace: Trace, workload: tuple[object, ...]) -> None:
    """bpf/include/kernel_stack.bpf.h, with every second recognised stack walked in full and compared."""
    traced = trace(*workload, knobs={"memo_check": 2})
    assert traced.counters["memo_wrong"] == 0
    assert traced.counters["memo_checks"] > 50 or workload[0] == "fork_storm"
