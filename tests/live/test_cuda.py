"""Calls of libraries' functions against programs that timed their own. The libraries are stand-ins for CUDA's."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Tracer, load, run
from runner import FOLDER, Workload
from stallscope.converters.model.calls import CallTimes, lower_bound
from stallscope.converters.phrases.remarks import worded
from stallscope.tracers.engines.ebpf.measures.calls import LEFT, CallsCollector
from stallscope.tracers.engines.ebpf.probes import KERNEL_BTF
from stallscope.tracers.kernel.shapes import SHAPES, Shape
from stallscope.tracers.kernel.uprobes import Way, best_way
from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.probe_targets.wanted import Library, Wanted
from tracing import Trace, Traced, only_in_truth

pytestmark = pytest.mark.usefixtures("live")

TRACE_CUDA = str(Path(sys.executable).with_name("trace-cuda"))
CLOSE, CLOCK, EARLY = 0.03, 10_000, 500
"""A latency may be shorter than the workload's by this share and so many ns: its clock also runs while the probes do,
and between them. It may be longer by a rounded ns or two, no more: the probes are between its two readings."""
INNER = {
    "cudaMalloc": {"cuMemAlloc", "cuInit"},
    "cudaFree": {"cuMemFree_v2"},
    "cudaGetDeviceProperties_v2": {"cuDeviceGetAttribute"},
    "cudaMemcpy": {"cuMemcpyHtoD_v2_ptds"},
    "cudaMemcpyAsync_ptsz": {"cuMemcpyHtoDAsync_v2_ptsz"},
    "cudaDeviceSynchronize": {"cuCtxSynchronize"},
}
"""Functions that the runtime's functions call."""


def truths(traced: Traced) -> dict[tuple[str, int], dict[str, Any]]:
    """(function, pid) → what the workload measured."""
    return {(w["function"], w["pid"]): w for w in traced.truth["waits"] if w["calls"]}


def probes_cost(traced: Traced) -> float:
    """Mean ns of a run of a program at a function, by its own clock. On the way to it a call takes longer by that."""
    (found,) = [
        re.search(r"([0-9]+) ns each in the programs", comment)
        for comment in worded(traced.profile.comments)
        if "the probes ran" in comment
    ]
    assert found
    return float(found[1])


def check(traced: Traced, probes: int = 2) -> dict[tuple[str, int], CallTimes]:
    """Every call of the truth was counted, none twice; their times are those that the workload measured.

    ``probes``: mean costs of a probe by which a latency may differ.
    """
    found = {(call.name, call.pid): call for call in traced.profile.calls}
    assert len(found) == len(traced.profile.calls)
    for (name, pid), truth in truths(traced).items():
        call, calls, ns = found[name, pid], truth["calls"], truth["ns"]
        assert call.count == calls == sum(call.latencies), (name, pid)
        if calls == 1:  # cuInit: the first one through code that was not used before
            continue
        slack = CLOCK + probes * probes_cost(traced) + only_in_truth(traced, truth, call) / calls
        slack += traced.stolen / calls  # 0 on a machine that nothing else uses
        missing = (ns - call.total) / calls
        assert -EARLY <= missing <= CLOSE * ns / calls + slack, (name, pid)
        shortest = sum(number * lower_bound(bucket) for bucket, number in enumerate(call.latencies))
        longest = sum(number * lower_bound(bucket + 1) for bucket, number in enumerate(call.latencies))
        assert shortest <= call.total < longest
        assert 0 < call.min <= call.mean <= call.max
        assert min(call.on_cpu, call.blocked, call.runnable, call.own) >= 0
    assert not any(traced.profile.lost[kind] for kind in CallsCollector(Calls()).losses())
    return found


def check_nesting(found: dict[tuple[str, int], CallTimes]) -> None:
    """A call's own time is what is not that of the calls that it makes."""
    for (name, pid), call in found.items():
        inner = [found[each, pid].total for each in INNER.get(name, ()) if (each, pid) in found]
        if inner:
            assert call.inner == sum(inner), (name, pid)
        assert call.library == ("libcudart.so.12" if name.startswith("cuda") else "libcuda.so.1")


def check_stacks(traced: Traced) -> None:
    """The samples sum to the calls, and their stacks have the calls' functions as frames."""
    times: defaultdict[str, int] = defaultdict(int)
    for sample in traced.profile.samples:
        state = str(sample.label("state")).partition("-")[0]
        times[state if state in ("running", "runnable") else "blocked"] += sample.values[0]
        assert any(frame.kind == "api" for frame in sample.stack) or sample.label("state") == "runnable-preempted"
    calls = traced.profile.calls
    assert sum(times.values()) == sum(call.own for call in calls)
    assert sum(sample.values[1] for sample in traced.profile.samples) == sum(call.count for call in calls)
    whole = sum(call.total for call in calls if call.name.startswith("cuda"))
    assert sum(times.values()) == whole
    assert times["blocked"] == sum(call.blocked for call in calls if call.name.startswith("cuda"))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_calls_of_one_process(trace: Trace, shape: Shape) -> None:
    options: dict[str, Any] = {"btf": KERNEL_BTF} if shape.raw else {}
    traced = trace("cuda_calls", "plain", 1, 40, measures=(Calls(),), shape=shape, **options)
    found = check(traced, probes=4 if shape.raw else 2)  # without task storage each stack is walked
    check_nesting(found)
    check_stacks(traced)
    errors = {name: call.errors for (name, _), call in found.items() if call.errors}
    invalid = {"CUDA_ERROR_INVALID_VALUE": 4}
    assert errors == {
        "cudaMalloc": {"cudaErrorMemoryAllocation": 4},
        "cuMemAlloc": invalid,
        "cuMemAlloc_v2": invalid,
    }


@pytest.mark.parametrize("way", Way)
def test_every_way(require: Callable[[bool, str], None], trace: Trace, way: Way) -> None:
    require(way.attach_type <= best_way().attach_type, f"the kernel has no {way.title}")
    found = check(trace("cuda_calls", "plain", 2, 30, measures=(CallsCollector(Calls(), way=way),)))
    check_nesting(found)


@pytest.mark.parametrize("processes", [2, 8])
def test_calls_of_several_processes(trace: Trace, processes: int) -> None:
    traced = trace("cuda_calls", "plain", processes, 20, measures=(Calls(),))
    check_nesting(check(traced))
    check_stacks(traced)


def test_a_call_that_ends_by_another_one(trace: Trace) -> None:
    """cuMemAlloc jumps to cuMemAlloc_v2: both begin and end at the same place of the stack."""
    found = check(trace("cuda_calls", "plain", 1, 30, measures=(Calls(),)))
    (old,) = [call for (name, _), call in found.items() if name == "cuMemAlloc"]
    (new,) = [call for (name, _), call in found.items() if name == "cuMemAlloc_v2"]
    assert old.count == new.count == 30
    assert 0 < new.total < old.total
    assert old.inner == new.total


def test_a_runtime_that_is_linked_in(trace: Trace) -> None:
    traced = trace("cuda_static", "plain", 1, 20, measures=(Calls(),))
    found = check(traced)
    (call,) = [call for (name, _), call in found.items() if name == "cudaMalloc"]
    assert call.library == "cuda_static"


def test_libraries_that_are_loaded_during_the_trace(trace: Trace) -> None:
    traced = trace("cuda_late", "plain", 2, 20, measures=(Calls(),))
    check_nesting(check(traced))
    check_stacks(traced)


def test_forked_processes(trace: Trace) -> None:
    traced = trace("cuda_calls", "fork", 2, 20, measures=(Calls(),))
    assert len({pid for _, pid in truths(traced)}) == 4
    check_nesting(check(traced))


def test_calls_that_are_left_by_longjmp(trace: Trace) -> None:
    traced = trace("cuda_calls", "leave", 1, 40, measures=(Calls(Wanted(launches=True)),))
    found = {call.name: call for call in traced.profile.calls}
    counts = {name: truth["calls"] for (name, _), truth in truths(traced).items()}
    assert counts["cudaLaunchHostFunc"] == 20
    assert found["cudaLaunchHostFunc"].count == 20
    assert found["cudaLaunchHostFunc"].errors == {LEFT: 20}
    assert found["cudaMalloc"].count == counts["cudaMalloc"] == 40
    assert found["cudaLaunchHostFunc"].inner == 0


def test_more_functions_on_request(trace: Trace) -> None:
    traced = trace("cuda_calls", "plain", 1, 5, measures=(Calls(Wanted(api=re.compile("GetProcAddress"))),))
    assert {"cuGetProcAddress_v2", "cudaMalloc"} <= {call.name for call in traced.profile.calls}


def test_any_library(trace: Trace) -> None:
    library = Library.at(str(FOLDER / "libcudart.so.12"))
    wanted = Wanted(libraries=(library,), symbols=re.compile("^standin_"))
    traced = trace("cuda_calls", "plain", 1, 5, measures=(Calls(wanted),))
    (call,) = [call for call in traced.profile.calls if call.name == "standin_driver_calls"]
    assert (call.count, call.errors, call.library) == (1, {}, "libcudart.so.12")


def test_waits_are_whole_beside_calls(trace: Trace) -> None:
    """Off-CPU stacks are complete although the kernel has replaced return addresses in them."""
    traced = trace("cuda_calls", "plain", 1, 30, measures=(OffCpu(), Calls()))
    check(traced)
    # A thread can be preempted in the kernel's trampoline itself, which has no unwind table.
    waits = [s for s in traced.samples("cudaDeviceSynchronize") if s.label("state") != "runnable-preempted"]
    assert waits
    for sample in waits:
        names = [frame.name for frame in sample.stack]
        assert names.index("main") < names.index("cudaDeviceSynchronize"), names
    assert all("[uprobes" not in frame.name for sample in waits for frame in sample.stack)


def test_a_call_that_goes_on_at_the_end(trace: Trace) -> None:
    traced = trace("cuda_calls", "plain", 1, 1, 1_000_000, measures=(Calls(),), duration=0.8)
    open_calls = {call.name: call for call in traced.profile.calls if call.open_count}
    assert set(open_calls) == {"cudaMalloc", "cuMemAlloc", "cuMemAlloc_v2"}
    assert all(500_000_000 < call.open_time <= 900_000_000 for call in open_calls.values())
    whole = sum(sample.values[0] for sample in traced.profile.samples)
    assert whole == pytest.approx(open_calls["cudaMalloc"].open_time, rel=0.05)


def test_a_killed_target(tmp_path: Path) -> None:
    with Workload("cuda_calls", "plain", 1, 1_000_000, 1) as workload:
        (pid,) = workload.pids
        with Tracer("-o", tmp_path / "x.pb.gz", "-p", pid, command=TRACE_CUDA) as tracer:
            tracer.ready()
            workload.release()
            time.sleep(0.5)
            os.kill(pid, 9)
            tracer.finish().check_succeeded()
    profile = load(tmp_path / "x.pb.gz")
    assert {call.pid for call in profile.calls} == {pid}
    assert sum(call.count for call in profile.calls) > 100


def test_the_command(tmp_path: Path) -> None:
    program = FOLDER / "cuda_late"
    done = run("-o", tmp_path / "x.svg", "--", program, "plain", 2, 30, command=TRACE_CUDA).check_succeeded()
    lines = [line for line in done.out.splitlines() if not line.startswith("{")]
    assert "% of the time of 2 calling threads in 2 processes of cuda_late is in cuda" in lines[0]
    assert "of it blocked in the ioctl 0xc020462a of file (fuse)" in lines[0]
    assert "cudaErrorMemoryAllocation" in done.out
    assert "cudaMalloc" in (tmp_path / "x.svg").read_text()


def test_a_command_that_ends_soon(tmp_path: Path) -> None:
    """Each call has its probe before it starts, also those of a library that it opens; most stacks are complete. On a
    busy machine the tracer can be late for the tables of a process that was just forked: one of several runs counts."""
    shares = []
    for i in range(6):
        out = tmp_path / f"{i}.pb.gz"
        done = run("-o", out, "--", FOLDER / "cuda_calls", "plain", 2, 30, 300, command=TRACE_CUDA).check_succeeded()
        truth = json.loads(next(line for line in done.out.splitlines() if line.startswith('{"workload"')))
        expected: defaultdict[str, int] = defaultdict(int)
        for wait in truth["waits"]:
            expected[wait["function"]] += wait["calls"]
        profile = load(out)
        found: defaultdict[str, int] = defaultdict(int)
        for call in profile.calls:
            found[call.name] += call.count
        assert {name: found[name] for name, calls in expected.items() if calls} == +Counter(expected)
        whole = sum(sample.values[0] for sample in profile.samples)
        complete = sum(s.values[0] for s in profile.samples if "main" in [frame.name for frame in s.stack])
        shares.append(complete / whole)
        if shares[-1] > 0.95:
            return
    pytest.fail(f"stacks are not complete: {shares}")


def test_json(tmp_path: Path) -> None:
    with Workload("cuda_calls", "plain", 1, 30) as workload:
        (pid,) = workload.pids
        with Tracer("-o", tmp_path / "x.svg", "--json", "-p", pid, command=TRACE_CUDA) as tracer:
            tracer.ready()
            workload.release()
            calls = tracer.finish().check_succeeded().summary["calls"]
    (call,) = [call for call in calls if call["name"] == "cudaMalloc"]
    assert (call["count"], call["errors"]) == (30, {"cudaErrorMemoryAllocation": 3})
    assert call["library"] == "libcudart.so.12"
    assert "device" not in call
    assert call["self_ns"] < call["total_ns"] == call["on_cpu_ns"] + call["blocked_ns"] + call["runnable_ns"]
    assert call["min_ns"] <= call["p50_ns"] <= call["p99_ns"] <= call["max_ns"]
    json.dumps(calls)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--api", "("], "'(' is not a regular expression"),
        (["--lib", "/no/such/lib.so", "--sym", "x"], "/no/such/lib.so"),
        (["--lib", "libc.so.6"], "--sym"),
        (["--sym", "x"], "--lib"),
        (["--lib", str(FOLDER / "libcudart.so.12"), "--sym", "^cudaMaloc$"], "cudaMalloc"),
        (["--lib", str(Path(__file__)), "--sym", "x"], "not an ELF file"),
    ],
)
def test_bad_input(tmp_path: Path, options: list[str], says: str) -> None:
    done = run("-o", tmp_path / "x.svg", *options, "-p", os.getpid(), "-d", 1, command=TRACE_CUDA)
    assert done.status != 0
    assert says in done.err
    assert "Traceback" not in done.err


def test_nothing_to_trace(tmp_path: Path) -> None:
    done = run("-o", tmp_path / "x.svg", "-d", 0.3, "-p", os.getpid(), command=TRACE_CUDA).check_succeeded()
    assert "no traced process has mapped a library with functions to trace" in done.out


def genuine_runtime() -> str:
    """The libcudart of the package nvidia-cuda-runtime-cu12, "" if it is not installed."""
    found = subprocess.run(
        [sys.executable, "-c", "import nvidia.cuda_runtime as m; print(list(m.__path__)[0])"],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"{found.stdout.strip()}/lib/libcudart.so.12" if found.returncode == 0 else ""


def test_the_genuine_runtime(require: Callable[[bool, str], None], tmp_path: Path) -> None:
    """Each call fails without a driver, and is counted with its error's name."""
    path = genuine_runtime()
    require(bool(path), "nvidia-cuda-runtime-cu12 is not installed")
    program = f"""
import ctypes, time
runtime = ctypes.CDLL({path!r})
time.sleep(1)
number = ctypes.c_int()
for _ in range(7):
    runtime.cudaGetDeviceCount(ctypes.byref(number))
    runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), 64)
"""
    out = tmp_path / "x.pb.gz"
    run("-o", out, "--", sys.executable, "-c", program, command=TRACE_CUDA).check_succeeded()
    calls = {call.name: call for call in load(out).calls}
    for name in ("cudaGetDeviceCount", "cudaMalloc"):
        assert calls[name].count == 7
        assert sum(calls[name].errors.values()) in (0, 7)
        assert all(error.startswith("cudaError") and " " not in error for error in calls[name].errors)
