"""ioctl calls against programs that timed their own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Tracer, folded, load, run
from runner import Workload
from stallscope.converters.model.calls import CallTimes, lower_bound
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.summary.summarize import summarize
from stallscope.tracers.engines.ebpf.measures.ioctl import IoctlCollector
from stallscope.tracers.engines.ebpf.probes import KERNEL_BTF
from stallscope.tracers.kernel.shapes import SHAPES, Shape
from stallscope.tracers.measures.ioctl import Ioctl
from stallscope.tracers.measures.offcpu import OffCpu
from tracing import Trace, Traced, only_in_truth

pytestmark = pytest.mark.usefixtures("live")

TRACE_IOCTL = str(Path(sys.executable).with_name("trace-ioctl"))
CLOSE, CLOCK = 0.03, 5_000
"""A latency may differ by this share or by so many ns: the workload's clock also runs while the probes do."""
HOLD_US = 2000
HELD = {
    "CONTROL": "NV2080_CTRL_CMD_GPU_GET_INFO_V2",
    "FAILED": "NV2080_CTRL_CMD_FB_GET_INFO_V2",
    "XFER": "NV2080_CTRL_CMD_GPU_GET_NAME_STRING",
    "ALLOC": "NV_ESC_RM_ALLOC NV20_SUBDEVICE_0",
    "FREE": "NV_ESC_RM_FREE",
    "UNKNOWN": "0x4601",
}
"""The workload's names and ours."""
BITS_32 = """
.code32
.globl _start
.type _start, @function
_start: movl $54, %eax
     movl $1, %ebx
     movl $0x5413, %ecx
     xorl %edx, %edx
     int $0x80
     movl $162, %eax
     movl $request, %ebx
     xorl %ecx, %ecx
     int $0x80
     decl rounds
     jnz _start
     movl $1, %eax
     xorl %ebx, %ebx
     int $0x80
.data
rounds: .long 20
request: .long 0, 10000000
"""
"""20 times an ioctl (TIOCGWINSZ) and a sleep of 10 ms."""


@pytest.fixture
def network(require: Callable[[bool, str], None]) -> None:
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        require(False, f"/dev/net/tun: {error.strerror}")


@pytest.fixture
def fuse(require: Callable[[bool, str], None]) -> None:
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        require(False, f"/dev/fuse: {error.strerror}")


def call_of(traced: Traced, name: str, pid: int) -> CallTimes:
    (found,) = [call for call in traced.profile.calls if (call.name, call.pid) == (name, pid)]
    return found


def check(traced: Traced, names: dict[str, str] | None = None) -> None:
    """Every call of the truth was counted, none twice; their times are those that the workload measured."""
    truths = traced.truth["waits"]
    for truth in truths:
        call = call_of(traced, (names or {}).get(truth["function"], truth["function"]), truth["pid"])
        assert call.count == truth["calls"] == sum(call.latencies)
        slack = CLOCK + only_in_truth(traced, truth, call) / call.count
        slack += traced.stolen / call.count  # 0 on a machine that nothing else uses
        assert call.total / call.count == pytest.approx(truth["ns"] / truth["calls"], rel=CLOSE, abs=slack), truth
        shortest = sum(number * lower_bound(bucket) for bucket, number in enumerate(call.latencies))
        longest = sum(number * lower_bound(bucket + 1) for bucket, number in enumerate(call.latencies))
        assert shortest <= call.total < longest
        assert 0 < call.min <= call.mean <= call.max
        assert min(call.on_cpu, call.blocked, call.runnable) >= 0
        assert (call.open_count, call.open_time) == (0, 0)
    assert {call.pid for call in traced.profile.calls} == {truth["pid"] for truth in truths}
    assert not any(traced.profile.lost[kind] for kind in IoctlCollector(Ioctl()).losses())
    check_stacks(traced)


def check_stacks(traced: Traced) -> None:
    """The samples sum to the calls, in parts, and have the call between the user's frames and the kernel's."""
    times = {"running": 0, "blocked": 0, "runnable": 0}
    for sample in traced.profile.samples:
        state = str(sample.label("state")).partition("-")[0]
        times[state if state in times else "blocked"] += sample.values[0]
        kinds = [frame.kind for frame in sample.stack]
        assert kinds.count("api") == 1, kinds
        assert "kernel" not in kinds[: kinds.index("api")]
        assert set(kinds[kinds.index("api") + 1 :]) <= {"kernel"}
    calls = traced.profile.calls
    assert times["running"] == sum(call.on_cpu for call in calls)
    assert times["blocked"] == sum(call.blocked for call in calls)
    assert times["runnable"] == sum(call.runnable for call in calls)
    assert sum(sample.values[1] for sample in traced.profile.samples) == sum(call.count for call in calls)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_calls_of_a_terminal(trace: Trace, shape: Shape) -> None:
    options: dict[str, Any] = {"btf": KERNEL_BTF} if shape.raw else {}
    traced = trace("ioctls", "tty", 2, 2000, measures=(Ioctl(),), shape=shape, **options)
    check(traced)
    for call in traced.profile.calls:
        assert call.errors == ({"ENOTTY": 2000} if call.name == "TCGETS" else {})
        assert call.device == "/dev/null" if call.name == "TCGETS" else call.device.startswith("/dev/pts/")
        assert call.blocked == 0


def test_calls_as_fast_as_they_come(trace: Trace) -> None:
    """Eight processes that do nothing else: every call is counted, and what is left out of the rest is, too."""
    traced = trace("ioctls", "tty", 8, 20_000, measures=(Ioctl(),))
    lost = {kind: traced.profile.lost[kind] for kind in IoctlCollector(Ioctl()).losses()}
    left_out = lost.pop("calls and waits left out of who was inside")
    assert not any(lost.values()), lost
    truths = traced.truth["waits"]
    for truth in truths:
        call = call_of(traced, truth["function"], truth["pid"])
        assert call.count == truth["calls"] == 20_000
    (null,) = [shared for shared in traced.profile.shared if shared.device == "/dev/null"]
    assert 160_000 - left_out <= null.count <= 160_000


@pytest.mark.parametrize("processes", [1, 2, 8])
def test_a_lock_of_the_kernel(network: None, trace: Trace, processes: int) -> None:
    traced = trace("ioctls", "tun", processes, 100, measures=(Ioctl(),))
    check(traced)
    assert {call.device for call in traced.profile.calls} == {"/dev/net/tun"}
    waiting = [s for s in traced.profile.samples if s.label("state") == "uninterruptible"]
    if processes > 2:  # two on two cores poll for the mutex: its owner runs
        assert any("mutex_lock" in frame.name for sample in waiting for frame in sample.stack)


@pytest.mark.parametrize("processes", [1, 2, 8])
def test_calls_held_by_one_server(fuse: None, trace: Trace, processes: int) -> None:
    """One call at a time, each held for HOLD_US: with N processes a call takes N times as long, blocked."""
    traced = trace("ioctls", "held", processes, 12, HOLD_US, measures=(IoctlCollector(Ioctl(), nvidia_major=0),))
    check(traced, HELD)
    for call in traced.profile.calls:
        assert call.device == "file (fuse)"
        assert call.min >= HOLD_US * 1000 * 0.99
        # A caller that loses its core first sleeps for less.
        assert call.blocked >= call.count * HOLD_US * 1000 * 0.75
    whole = sum(call.total for call in traced.profile.calls)
    calls = sum(call.count for call in traced.profile.calls)
    assert whole / calls >= 0.8 * processes * HOLD_US * 1000


def test_the_drivers_own_status_is_an_error(fuse: None, trace: Trace) -> None:
    traced = trace("ioctls", "held", 1, 7, 100, measures=(IoctlCollector(Ioctl(), nvidia_major=0),))
    errors = {call.name: call.errors for call in traced.profile.calls}
    assert errors == {
        HELD["CONTROL"]: {},
        HELD["FAILED"]: {"NV_ERR_INVALID_ARGUMENT": 7},
        HELD["XFER"]: {"NV_ERR_INVALID_ARGUMENT": 7},
        HELD["ALLOC"]: {},
        HELD["FREE"]: {},
        HELD["UNKNOWN"]: {"EINVAL": 7},
    }


def test_the_matrix_finds_the_slow_holder(fuse: None, trace: Trace) -> None:
    """Eight processes, one server that takes a call at a time; it takes ten times as long for the calls of one."""
    hold_us = 4000  # on a busy machine the server also waits for a core
    traced = trace("ioctls", "slow", 8, 20, hold_us, measures=(IoctlCollector(Ioctl(), nvidia_major=0),))
    (slow,) = {truth["pid"] for truth in traced.truth["waits"] if truth["function"] == "SLOW"}
    (shared,) = traced.profile.shared
    assert (shared.name, shared.device) == (HELD["CONTROL"], "file (fuse)")
    calls = traced.profile.calls
    assert shared.count == sum(call.count for call in calls) == 160
    assert shared.time == sum(call.total for call in calls)
    assert shared.mean_inside == pytest.approx(sum(call.total for call in calls) / shared.busy, rel=1e-6)
    assert shared.turns_factor is not None
    assert shared.turns_factor == pytest.approx(8, rel=0.2)
    assert 0.9 < shared.shared / shared.busy <= 1
    assert shared.turns[slow] >= 20 * 10 * hold_us * 1_000 * 0.99
    others = [ns for pid, ns in shared.turns.items() if pid != slow]
    assert shared.turns[slow] > 2 * max(others)
    held = shared.held()
    assert max(held, key=lambda pid: held[pid]) == slow
    for waiter in {call.pid for call in calls} - {slow}:
        by = {pid: ns for (who, pid), ns in shared.waits.items() if who == waiter}
        assert max(by, key=lambda pid: by[pid]) == slow
        (call,) = [call for call in calls if call.pid == waiter]
        # It is blocked in its own turns, too.
        assert call.blocked * 0.5 < sum(by.values()) <= call.blocked
    # … and the summary says it.
    (told,) = [sentence for sentence in summarize(traced.profile).answer if sentence.startswith("While ")]
    assert told.startswith(f"While ioctls ({slow}) was inside and the next to return, 7 other processes waited: ")
    factor = re.search(r"Its turns take ([0-9.]+) times as long as theirs on average\.$", told)
    assert factor
    assert 2 < float(factor[1]) < 12, "it is answered 10 times as slowly"


def test_alone_is_alone_on_the_device(fuse: None, trace: Trace) -> None:
    """A call during which another process holds the device in another command is not one that tells how long it takes
    alone."""
    calls = 15
    traced = trace("ioctls", "beside", 3, calls, 3000, measures=(IoctlCollector(Ioctl(), nvidia_major=0),))
    (shared,) = traced.profile.shared
    assert (shared.name, shared.count) == (HELD["CONTROL"], 2 * 3 * calls)
    # Beside the holder, one can be in the holder's pause; or both are one after the other when they should be at once.
    assert 2 * calls <= shared.alone <= 3 * calls
    alone = [truth for truth in traced.truth["waits"] if truth["function"] == "ALONE"]
    assert shared.alone_time >= 0.9 * sum(truth["ns"] for truth in alone)


def test_who_is_alone_shares_nothing(fuse: None, trace: Trace) -> None:
    traced = trace("ioctls", "slow", 1, 20, 1000, measures=(IoctlCollector(Ioctl(), nvidia_major=0),))
    assert traced.profile.shared == []


def test_beside_waits(fuse: None, trace: Trace) -> None:
    """The waits are whole with both measures, and so are the calls."""
    traced = trace("ioctls", "held", 2, 10, 500, measures=(OffCpu(), IoctlCollector(Ioctl(), nvidia_major=0)))
    truth = traced.truth["waits"]
    calls = {(call.name, call.pid): call for call in traced.profile.calls}
    assert all(calls[HELD[each["function"]], each["pid"]].count == 10 for each in truth)
    blocks = sum(sample.values[1] for sample in traced.profile.samples if sample.label("state") == "interruptible")
    assert blocks >= sum(each["blocks"] for each in truth) * 0.9


def test_a_call_that_goes_on_at_the_end(fuse: None, trace: Trace) -> None:
    traced = trace("ioctls", "held", 1, 1, 1_000_000, measures=(IoctlCollector(Ioctl(), nvidia_major=0),), duration=0.8)
    (call,) = traced.profile.calls
    assert (call.name, call.count, call.open_count) == (HELD["CONTROL"], 0, 1)
    assert 100_000_000 < call.open_time <= 900_000_000
    blocked = [s for s in traced.profile.samples if s.label("state") not in ("running", "runnable-woken")]
    assert sum(sample.values[0] for sample in blocked) == pytest.approx(call.open_time, rel=0.05)
    assert {sample.label("open") for sample in traced.profile.samples} == {"yes"}
    assert any("1 ioctl had not ended" in comment for comment in worded(traced.profile.comments))


PROGRAM = f"""
import fcntl, os
r, w = os.openpty()
for _ in range(50):
    fcntl.ioctl(w, {termios.TIOCGWINSZ}, bytes(8))
"""


def test_the_command(tmp_path: Path) -> None:
    outputs = [tmp_path / name for name in ("x.svg", "x.pb.gz", "x.folded")]
    options = [argument for path in outputs for argument in ("-o", path)]
    done = run(*options, "--", sys.executable, "-c", PROGRAM, command=TRACE_IOCTL).check_succeeded()
    assert "TIOCGWINSZ /dev/pts/" in done.out
    assert "distribution" in done.out
    assert done.out.splitlines()[0].endswith("of the threads' time is in calls.")
    assert "% of the time in all calls is in " in done.out
    profile = load(outputs[1])
    (call,) = [call for call in profile.calls if call.name == "TIOCGWINSZ"]
    assert call.count == 50
    stacks = folded(outputs[2].read_text())
    assert any(";ioctl;TIOCGWINSZ /dev/pts/" in stack for stack in stacks)
    assert "TIOCGWINSZ" in outputs[0].read_text()


def test_json(tmp_path: Path) -> None:
    done = run("-o", tmp_path / "x.svg", "--json", "--", sys.executable, "-c", PROGRAM, command=TRACE_IOCTL)
    calls = json.loads(done.check_succeeded().out)["calls"]
    (call,) = [call for call in calls if call["name"] == "TIOCGWINSZ"]
    assert call["count"] == 50
    assert call["errors"] == {}
    assert call["device"].startswith("/dev/pts/")
    assert call["total_ns"] == call["self_ns"] == call["on_cpu_ns"] + call["blocked_ns"] + call["runnable_ns"]
    assert call["min_ns"] <= call["p50_ns"] <= call["p99_ns"] <= call["max_ns"]


def test_intervals(fuse: None, tmp_path: Path) -> None:
    """Each call is counted once, where it ends; its time is in the intervals in which it was."""
    with (
        Workload("ioctls", "held", 2, 2, 150_000, linger=True) as workload,
        Tracer(
            *("--every", "1s", "-n", "ioctls", "-o", tmp_path / "%Y%m%d-%H%M%S.pb.gz"), command=TRACE_IOCTL
        ) as tracer,
    ):
        tracer.ready()
        workload.release()
        truths = workload.truth()["waits"]
        tracer.interrupt().finish().check_succeeded()
    found = [load(path) for path in sorted(tmp_path.iterdir())]
    assert len(found) >= 2  # more, unless the machine is busy
    for pid in {truth["pid"] for truth in truths}:
        calls = [call for profile in found for call in profile.calls if call.pid == pid]
        ns = sum(truth["ns"] for truth in truths if truth["pid"] == pid)
        assert sum(call.count for call in calls) == sum(truth["calls"] for truth in truths if truth["pid"] == pid)
        assert sum(call.total + call.earlier for call in calls) == pytest.approx(ns, rel=CLOSE)
        assert sum(call.earlier for call in calls) == sum(call.open_time for call in calls) > 0
        assert all(call.max <= ns for call in calls)
    for profile in found:
        assert not any(profile.lost[kind] for kind in IoctlCollector(Ioctl()).losses())
        each = [call.total + call.open_time for call in profile.calls]
        assert sum(sample.values[0] for sample in profile.samples) == sum(each)
        assert max(each, default=0) <= 2 * profile.duration_ns


def test_nothing_is_called(tmp_path: Path) -> None:
    done = run("-o", tmp_path / "x.svg", "-d", 0.3, "-p", os.getpid(), command=TRACE_IOCTL).check_succeeded()
    assert done.out.startswith("No call was seen.\n")


def test_a_killed_target(tmp_path: Path) -> None:
    """Calls of the killed target are there, and nothing hangs."""
    with Workload("ioctls", "tty", 1, 1_000_000) as workload:
        (pid,) = workload.pids
        with Tracer("-o", tmp_path / "x.pb.gz", "-p", pid, command=TRACE_IOCTL) as tracer:
            tracer.ready()
            workload.release()
            time.sleep(0.3)
            os.kill(pid, 9)
            tracer.finish().check_succeeded()
    profile = load(tmp_path / "x.pb.gz")
    assert sum(call.count for call in profile.calls) > 1000
    assert {call.pid for call in profile.calls} == {pid}


def test_a_program_of_32_bits(tmp_path: Path, require: Callable[[bool, str], None]) -> None:
    """The kernel's tracepoints leave out its system calls: the summary says so."""
    require(all(map(shutil.which, ("as", "ld"))), "there is no assembler and linker")
    program = tmp_path / "bits"
    (tmp_path / "bits.s").write_text(BITS_32)
    subprocess.run(["as", "--32", "-o", tmp_path / "bits.o", tmp_path / "bits.s"], check=True)
    subprocess.run(["ld", "-m", "elf_i386", "-o", program, tmp_path / "bits.o"], check=True)
    require(subprocess.run([program]).returncode == 0, "the kernel runs no 32-bit programs")
    done = run("-o", tmp_path / "x.pb.gz", "--", program, command=TRACE_IOCTL).check_succeeded()
    assert not load(tmp_path / "x.pb.gz").calls
    assert "Note: the kernel does not report ioctls of 32-bit programs: those of bits are missing\n" in done.out
