"""Calls with the ioctls and the copies in them, against programs that know what they do."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
from commands import Tracer, load, run
from runner import FOLDER, Workload
from stallscope.converters.model import Profile, Sample
from stallscope.tracers.engines.ebpf.measures.ioctl import IoctlCollector
from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.measures.ioctl import Ioctl
from stallscope.tracers.probe_targets.wanted import Library, Wanted
from test_cuda import check, check_nesting, truths
from tracing import Trace, Traced

pytestmark = pytest.mark.usefixtures("live")

TRACE_CUDA = str(Path(sys.executable).with_name("trace-cuda"))
GET_INFO, FREE = "NV2080_CTRL_CMD_GPU_GET_INFO_V2", "NV_ESC_RM_FREE"
IN_DRIVER = {
    "cuDeviceGetAttribute": GET_INFO,
    "cuMemFree_v2": FREE,
    "cuCtxSynchronize": "NV2080_CTRL_CMD_MC_GET_ARCH_INFO",
}
"""The ioctl that each call of these functions makes, once."""
USUAL = Wanted()
WAITS = re.compile(r"interruptible|uninterruptible")


def joined(wanted: Wanted = USUAL) -> tuple[IoctlCollector, Calls]:
    """``nvidia_major`` is that of files without a device, as the stand-in for NVIDIA's is one."""
    ioctls = IoctlCollector(Ioctl(alone=False), nvidia_major=0)
    return ioctls, Calls(wanted)


def ioctl_of(sample: Sample) -> str:
    """The frame of the ioctl in its stack; "" without."""
    return next((frame.name for frame in sample.stack if frame.kind == "api" and frame.module is None), "")


def functions_of(sample: Sample) -> list[str]:
    """The frames of functions with a probe."""
    return [frame.name for frame in sample.stack if frame.kind == "api" and frame.module]


def state_of(sample: Sample) -> str:
    state = str(sample.label("state"))
    return state if state == "running" else "runnable" if state.startswith("runnable") else "blocked"


def check_sums(profile: Profile, outermost: str) -> None:
    """Each ns is counted once: samples sum to the calls that the program made, and those in ioctls to the ioctls."""
    whole: Counter[str] = Counter()
    inside: Counter[str] = Counter()
    for sample in profile.samples:
        if ioctl_of(sample) and not functions_of(sample):  # no call made it
            continue
        whole[state_of(sample)] += sample.values[0]
        if ioctl_of(sample):
            inside[state_of(sample)] += sample.values[0]
    calls = [call for call in profile.calls if call.library]
    outer = [call for call in calls if re.match(outermost, call.name)]
    assert whole.total() == sum(call.own for call in calls) == sum(call.total for call in outer)
    assert whole["running"] == sum(call.on_cpu for call in outer)
    assert whole["blocked"] == sum(call.blocked for call in outer)
    assert whole["runnable"] == sum(call.runnable for call in outer)
    made = [each for each in profile.call_ioctls if re.match(outermost, each.name)]
    assert inside.total() == sum(each.total for each in made)
    assert inside["running"] == sum(each.on_cpu for each in made)
    assert inside["blocked"] == sum(each.blocked for each in made)


def check_ioctls(traced: Traced) -> None:
    """Checks which function makes which ioctls, and how many."""
    made = {(each.name, each.pid, each.command): each for each in traced.profile.call_ioctls}
    for (name, pid), truth in truths(traced).items():
        calls = truth["calls"]
        if name in IN_DRIVER:
            assert made[name, pid, IN_DRIVER[name]].count == calls, name
        if name == "cudaGetDeviceProperties_v2":
            inside = made[name, pid, GET_INFO]
            assert inside.count == 3 * calls
            assert inside.total == made["cuDeviceGetAttribute", pid, GET_INFO].total
    ioctls = {(call.name, call.pid): call for call in traced.profile.calls if call.device}
    for (name, pid, command), each in made.items():
        if name == "cuMemFree_v2":
            assert (each.count, each.total) == (ioctls[command, pid].count, ioctls[command, pid].total)


@pytest.mark.parametrize("processes", [1, 2, 8])
def test_every_nanosecond_is_counted_once(trace: Trace, processes: int) -> None:
    traced = trace("cuda_calls", "plain", processes, 20, measures=joined())
    check_nesting({key: call for key, call in check(traced, probes=4).items() if call.library})
    check_sums(traced.profile, "cuda")
    check_ioctls(traced)


def test_stacks_have_the_function_then_the_ioctl_then_the_wait(trace: Trace) -> None:
    traced = trace("cuda_calls", "plain", 2, 30, measures=joined())
    waits = [s for s in traced.samples("cuDeviceGetAttribute") if WAITS.fullmatch(str(s.label("state")))]
    longest = max(waits, key=lambda sample: sample.values[0])
    names = [frame.name for frame in longest.stack]
    order = ["main", "cudaGetDeviceProperties_v2", "cuDeviceGetAttribute", ioctl_of(longest), "request_wait_answer"]
    assert [name for name in names if name in order] == order
    assert ioctl_of(longest).startswith(GET_INFO)
    kinds = {frame.name: frame.kind for frame in longest.stack}
    assert [kinds[name] for name in order] == ["native", "api", "api", "api", "kernel"]


def test_waits_beside_ioctls_are_not_in_them(trace: Trace) -> None:
    """get_sizes() calls two ioctls, and sleeps for 100 us in between."""
    wanted = Wanted(libraries=(Library.at(str(FOLDER / "ioctls")),), symbols=re.compile("^get_sizes$"))
    profile = trace("ioctls", "inside", 2, 200, measures=joined(wanted)).profile
    check_sums(profile, "get_sizes")
    assert {(each.name, each.command, each.count) for each in profile.call_ioctls} == {("get_sizes", "TIOCGWINSZ", 400)}
    asleep = [s for s in profile.samples if any(frame.name == "do_nanosleep" for frame in s.stack)]
    assert sum(sample.values[0] for sample in asleep) > 2 * 200 * 100_000
    assert not any(map(ioctl_of, asleep))
    assert all(
        [frame.name for frame in s.stack].index("get_sizes") < [frame.name for frame in s.stack].index(ioctl_of(s))
        for s in profile.samples
        if ioctl_of(s)
    )


@pytest.mark.parametrize("processes", [1, 4])
def test_ioctls_outside_of_calls_are_in_the_picture(trace: Trace, processes: int) -> None:
    """The traced function is not called: all ioctls are outside, with their time and what called them."""
    wanted = Wanted(libraries=(Library.at(str(FOLDER / "ioctls")),), symbols=re.compile("^get_sizes$"))
    profile = trace("ioctls", "held", processes, 10, 2000, measures=joined(wanted)).profile
    times = Counter[str]()
    for sample in profile.samples:
        names = [frame.name for frame in sample.stack]
        assert ioctl_of(sample) in names
        assert "main" in names[: names.index(ioctl_of(sample))], sample
        assert not functions_of(sample)
        assert sample.values[1] == 0
        times[state_of(sample)] += sample.values[0]
    calls = profile.calls
    assert sum(call.count for call in calls if call.device == "file (fuse)") == processes * 60
    assert times["running"] == sum(call.on_cpu for call in calls)
    assert times["blocked"] == sum(call.blocked for call in calls)
    assert times["runnable"] == sum(call.runnable for call in calls)
    assert times["blocked"] > 0.9 * processes * 60 * 2_000_000


def test_an_outside_ioctl_that_goes_on_at_the_end(trace: Trace) -> None:
    wanted = Wanted(libraries=(Library.at(str(FOLDER / "ioctls")),), symbols=re.compile("^get_sizes$"))
    profile = trace("ioctls", "held", 1, 1, 1_000_000, measures=joined(wanted), duration=0.8).profile
    (call,) = profile.calls
    assert call.open_count == 1
    assert sum(sample.values[0] for sample in profile.samples) == pytest.approx(call.open_time, rel=0.05)


def test_an_ioctl_that_goes_on_at_the_end(trace: Trace) -> None:
    profile = trace("cuda_calls", "plain", 1, 1, 1_000_000, measures=joined(), duration=0.8).profile
    inside = sum(sample.values[0] for sample in profile.samples if ioctl_of(sample))
    whole = sum(sample.values[0] for sample in profile.samples)
    (outer,) = [call for call in profile.calls if call.name == "cudaMalloc"]
    assert whole == pytest.approx(outer.open_time, rel=0.05)
    assert inside > 0.9 * whole
    made = {each.name: each for each in profile.call_ioctls}
    assert set(made) == {"cudaMalloc", "cuMemAlloc", "cuMemAlloc_v2"}
    assert all((each.count, each.open_count) == (0, 1) for each in made.values())
    assert all(each.open_time == pytest.approx(inside, rel=0.01) for each in made.values())


H2D, D2H, D2D = "host to device", "device to host", "device to device"
LARGE = (1 << 32) + 4096
COPIED = {
    ("cudaMemcpy", H2D, False): (1, LARGE, 0),
    ("cudaMemcpy", D2H, False): (1, 4096, 0),
    ("cudaMemcpy", "unknown", False): (1, 4096, 0),
    ("cudaMemcpyAsync", D2H, True): (1, 4096, 0),
    ("cudaMemcpy2D", D2H, False): (1, 96 * 7, 0),
    ("cudaMemcpyToSymbol", H2D, False): (1, 4096, 0),
    ("cudaMemcpyPeer", D2D, False): (1, 4096, 0),
    ("cudaMemcpy3D", D2D, False): (2, 96 * 7 * 5, 1),
    ("cuMemcpyHtoD", H2D, False): (1, 4096, 0),
    ("cuMemcpyHtoD_v2", H2D, False): (1, LARGE, 0),
    ("cuMemcpy2D_v2", H2D, False): (1, 96 * 7, 0),
    ("cuMemcpy2D", "unknown", False): (1, 0, 1),
    ("cuMemcpy3D_v2", D2H, False): (1, 96 * 7 * 5, 0),
}
"""Copies of a round of cuda_copies: number, bytes, and how many have an unknown size. cuMemcpyDtoD_v2 fails."""


def test_copies(trace: Trace) -> None:
    profile = trace("cuda_copies", 30, measures=joined()).profile
    copies = profile.copies
    found = {(each.name, each.direction, each.is_async): (each.count, each.bytes, each.unknown) for each in copies}
    assert found == {key: tuple(30 * number for number in each) for key, each in COPIED.items()}
    calls = {call.name: call for call in profile.calls}
    assert sum(each.total for each in copies if each.name == "cudaMemcpy") == calls["cudaMemcpy"].total
    assert calls["cuMemcpyDtoD_v2"].errors == {"CUDA_ERROR_INVALID_VALUE": 30}
    assert calls["cuMemcpyDtoHAsync_v2"].count == 30  # it is a part of cudaMemcpyAsync


def test_copies_of_the_stand_ins(trace: Trace) -> None:
    """The runtime's copies call the driver's: they are counted once."""
    profile = trace("cuda_calls", "plain", 2, 20, measures=joined()).profile
    found = {(each.name, each.direction, each.is_async, each.count, each.bytes) for each in profile.copies}
    assert found == {("cudaMemcpy", H2D, False, 18, 18 * 64), ("cudaMemcpyAsync_ptsz", H2D, True, 18, 18 * 64)}
    assert len(profile.copies) == 4


def test_the_command(tmp_path: Path) -> None:
    options = "-o", tmp_path / "x.folded", "--json"
    with (
        Workload("cuda_calls", "plain", 8, 20) as workload,
        Tracer(*options, *pids(workload), command=TRACE_CUDA) as tracer,
    ):
        tracer.ready()
        workload.release()
        summary = tracer.finish().check_succeeded().summary
    first = summary["answer"][0]
    whose = "of the time of 8 calling threads in 8 processes of cuda_calls"
    assert f"% {whose} is in cudaGetDeviceProperties_v2 (" in first
    assert re.search(r"% of it blocked in the ioctl 0xc020462a of file \(fuse\), in request_wait_answer", first)
    (shared,) = [call for call in summary["shared_calls"] if call["name"] == "0xc020462a"]
    factor = shared["factor"] if shared["alone_count"] >= 10 else shared["turns_factor"]
    assert (f"that ioctl takes {factor:.1f} times as long" in first) == (factor >= 2)
    (query,) = {call["name"]: call for call in summary["calls"] if call["name"] == "cuDeviceGetAttribute"}.values()
    (made,) = query["ioctls"]
    assert (made["name"], made["count"], made["blocked_in"]) == ("0xc020462a", query["count"], "request_wait_answer")
    assert made["total_ns"] == made["on_cpu_ns"] + made["blocked_ns"] + made["runnable_ns"] < query["total_ns"]
    assert len(summary["call_times"]) == 8
    for each in summary["call_times"]:
        parts = sum(sum(each[name].values()) for name in ("gpu", "driver", "other_calls", "outside"))
        assert each["wall_ns"] == parts
        assert each["driver"]["blocked_ns"] > each["gpu"]["blocked_ns"] > each["gpu"]["on_cpu_ns"]
    assert {(each["direction"], each["async"]) for each in summary["copies"]} == {(H2D, False), (H2D, True)}
    assert all(each["bytes_per_second"] is None for each in summary["copies"] if each["async"])
    json.dumps(summary)
    folded = (tmp_path / "x.folded").read_text()
    order = "cudaGetDeviceProperties_v2", "cuDeviceGetAttribute", r"0xc020462a file \(fuse\)", "request_wait_answer"
    assert re.search(";.*".join(order), folded)


def pids(workload: Workload) -> list[str | int]:
    return [argument for pid in workload.pids for argument in ("-p", pid)]


def test_many_calls_of_several_processes(tmp_path: Path) -> None:
    """8 processes that do nothing else: each call is counted, or the loss is."""
    program, out, calls = FOLDER / "call_loop", tmp_path / "x.pb.gz", 40_000
    script = f"for i in 1 2 3 4 5 6 7 8; do {program} {calls} & done; wait"
    wanted = ("--lib", program, "--sym", "^call_target$")
    run("-o", out, *wanted, "--", "sh", "-c", script, command=TRACE_CUDA).check_succeeded()
    profile = load(out)
    found = [call for call in profile.calls if call.name == "call_target"]
    lost = sum(profile.lost[kind] for kind in ("calls",))
    assert len(found) == 8
    assert sum(call.count for call in found) + lost == 8 * (calls + 1)
    assert sum(sample.values[0] for sample in profile.samples) == sum(call.own for call in found)
    assert all(call.min <= call.mean <= call.max < 10_000_000_000 for call in found)
    assert all(sample.values[0] < 60_000_000_000 for sample in profile.samples)


def test_ioctls_outside_of_calls(tmp_path: Path) -> None:
    """get_sizes() of the program makes all of them; the table tells the time of those that no timed function made."""
    program, out = FOLDER / "ioctls", tmp_path / "x.pb.gz"
    for symbol, outside in (("^get_sizes$", False), ("^workload_end$", True)):
        options = "--force", "-o", out, "--lib", program, "--sym", symbol
        done = run(*options, "--", program, "inside", 2, 200, command=TRACE_CUDA).check_succeeded()
        told = re.search("^Ioctls outside of these calls: .*", done.out, re.MULTILINE)
        assert bool(told and "TIOCGWINSZ" in told[0]) == outside, (symbol, told)
