"""The engine bcc, against libbpf and against workloads whose truth is known."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import PATIENCE, Tracer, load, run, together
from runner import FOLDER, Workload
from stallscope.converters.model import Profile
from stallscope.converters.phrases.remarks import worded
from stallscope.tracers.base import procfs
from stallscope.tracers.bcc_compiler.place import find
from stallscope.tracers.engines.bcc.programs import Attached, make
from stallscope.tracers.engines.bcc.source import Choice
from stallscope.tracers.engines.bcc.tables import Tables
from stallscope.tracers.engines.named_rows import LOST
from stallscope.tracers.holder.links import bpf
from stallscope.tracers.kernel.bytecode import Program

TRACE_WALL, TRACE_OFFCPU = (str(Path(sys.executable).with_name(f"trace-{stem}")) for stem in ("wall", "offcpu"))
SLEEPS = ("sleep_1ms", "sleep_10ms", "sleep_25ms")
BCC = ("--engine", "bcc")
BOTH: dict[str, tuple[object, ...]] = {"libbpf": (), "bcc": ()}
NO_BTF = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf && exec "$@"', "sh")
"""Runs a command where the kernel's type information is hidden."""
INFO_BY_FD, BTF_ID = 15, 128
"""BPF_OBJ_GET_INFO_BY_FD; the offset of btf_id in struct bpf_prog_info of include/uapi/linux/bpf.h."""
UNREPORTED = "scheduler events that the kernel did not report"


@pytest.fixture(autouse=True)
def bcc(require: Callable[[bool, str], None]) -> None:
    """Skips where there is no bcc; with REQUIRE_LIVE=1 fails there."""
    require(os.geteuid() == 0, "this needs root")
    try:
        find()
    except Exception as error:
        require(False, str(error))


def times(profile: Profile, functions: tuple[str, ...], *, running: bool) -> Counter[str]:
    """ns on cores, or blocked, in each of these functions."""
    found: Counter[str] = Counter()
    for sample in profile.samples:
        state = str(sample.label("state"))
        if state.startswith("runnable") or (state == "running") is not running:
            continue
        names = {frame.name for frame in sample.stack}
        found.update({name: sample.values[0] for name in functions if name in names})
    return found


def waits_in(profile: Profile, function: str) -> int:
    """Number of times that a thread was blocked in a function."""
    return sum(
        sample.values[1]
        for sample in profile.samples
        if sample.label("state") == "interruptible" and function in {frame.name for frame in sample.stack}
    )


def check_closure(profile: Profile) -> None:
    """Checks that on a core + blocked + runnable is a thread's wall-clock time."""
    assert profile.threads
    for thread in profile.threads:
        assert thread.on_cpu + thread.runnable + sum(thread.blocked.values()) == thread.wall


@pytest.mark.usefixtures("live")
def test_it_agrees_with_libbpf(tmp_path: Path) -> None:
    """Both trace at the same time: what else the machine does is the same for both."""
    with contextlib.ExitStack() as stack:
        workloads = [
            stack.enter_context(Workload("sleeps", 80, linger=True)),
            stack.enter_context(Workload("slow_producer", 400, linger=True)),
            stack.enter_context(Workload("spinner", 3000, linger=True)),
        ]
        pids = ",".join(str(each.pid) for each in workloads)
        with together(BOTH, tmp_path, "-p", pids, "-F", 499) as found:
            for each in workloads:
                each.release()
            for each in workloads:
                each.truth()
    for profile in found.values():
        check_closure(profile)
    one, other = found["bcc"], found["libbpf"]
    # What the kernel does not report to one of them is told.
    missing = sum(sample.values[0] for sample in one.samples if sample.stack[0].name == LOST)
    waits = (*SLEEPS, "make_item", "take_item")
    for functions, running in ((waits, False), (("spin",), True)):
        by_bcc, by_libbpf = (times(profile, functions, running=running) for profile in (one, other))
        assert by_libbpf.keys() == set(functions)
        for name, expected in by_libbpf.items():
            assert abs(by_bcc[name] - expected) <= 0.05 * expected + missing, (name, by_bcc, by_libbpf)
    assert missing < 0.05 * sum(thread.wall for thread in one.threads)
    for mine in one.threads:
        (its,) = [thread for thread in other.threads if thread.tid == mine.tid]
        for of_bcc, of_libbpf in ((mine.on_cpu, its.on_cpu), (mine.runnable, its.runnable)):
            assert abs(of_bcc - of_libbpf) <= 0.05 * its.wall + missing, (mine, its, missing)
        assert mine.thread == its.thread
    assert any("frame pointers" in comment for comment in worded(one.comments))


def test_a_command_from_its_beginning_where_there_is_no_btf(tmp_path: Path) -> None:
    """auto takes it, and says why; nothing reads the kernel's type information."""
    path = tmp_path / "x.pb.gz"
    words = ("-o", path, "--", FOLDER / "sleeps", 4)
    done = run(*words, command=TRACE_OFFCPU, prefix=NO_BTF).check_succeeded()
    assert "taken with bcc, because other engines cannot be used (libbpf: this kernel carries no BTF" in done.out
    profile = load(path)
    check_closure(profile)
    unseen = profile.lost.get(UNREPORTED, 0)
    for name, number in {"sleep_1ms": 16, "sleep_10ms": 8, "sleep_25ms": 4}.items():
        waits = [
            s for s in profile.samples if name in {f.name for f in s.stack} and s.label("state") == "interruptible"
        ]
        assert number - unseen <= sum(s.values[1] for s in waits) <= number
    assert {s.label("process") for s in profile.samples} == {"sleeps"}
    assert [thread.exited for thread in profile.threads] == [True]


@pytest.mark.parametrize("choose", ["-p", "-t", "-n", "-a"])
def test_scopes(choose: str, tmp_path: Path) -> None:
    path = tmp_path / "x.pb.gz"
    with Workload("slow_producer", 100_000, linger=True) as traced, Workload("sleeps", 1000, linger=True) as other:
        for each in (traced, other):
            each.release()
        until_it_runs(traced)
        producer = next(tid for tid in procfs.tids(traced.pid) if procfs.comm(traced.pid, tid) == "producer")
        whom = {"-p": [traced.pid], "-t": [producer], "-n": ["^slow_producer$"], "-a": []}[choose]
        run(choose, *whom, "-d", 1, *BCC, "-o", path, command=TRACE_WALL).check_succeeded()
    profile = load(path)
    check_closure(profile)
    found = times(profile, ("make_item", "take_item", *SLEEPS), running=False)
    assert found["make_item"] > 0.3e9
    assert (found["take_item"] > 0.3e9) is (choose != "-t")
    assert (found["sleep_25ms"] > 0.1e9) is (choose == "-a")
    if choose == "-t":
        assert {thread.tid for thread in profile.threads} == {producer}
    assert os.getpid() not in {thread.pid for thread in profile.threads} or choose == "-a"


def until_it_runs(workload: Workload) -> None:
    until = time.monotonic() + PATIENCE
    while len(procfs.tids(workload.pid)) < 3:
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize("children", [True, False])
def test_children(children: bool, tmp_path: Path) -> None:
    """Each sleeps once, and executes another program."""
    path = tmp_path / "x.pb.gz"
    options = () if children else ("--no-children",)
    command = (FOLDER / "fork_storm", "--exec", 50)
    run(*BCC, *options, "-o", path, "--", *command, command=TRACE_OFFCPU).check_succeeded()
    profile = load(path)
    check_closure(profile)
    assert len({thread.pid for thread in profile.threads}) == (51 if children else 1)
    slept, unseen = waits_in(profile, "exec_child_sleep"), profile.lost.get(UNREPORTED, 0)
    assert 50 - unseen <= slept <= 50 if children else not slept
    assert sum(thread.exited for thread in profile.threads) == len(profile.threads)


def test_what_does_not_fit_is_told_with_its_time(tmp_path: Path) -> None:
    """A storm of different stacks: tables are emptied in time, or the loss is told."""
    path = tmp_path / "x.pb.gz"
    with Workload("many_stacks", linger=True) as workload:
        arguments = (*BCC, "--table-size", 1024, "-p", workload.pid, "-o", path)
        with Tracer(*arguments, command=TRACE_OFFCPU) as tracer:
            tracer.ready()
            workload.release()
            workload.truth()
            done = tracer.interrupt().finish().check_succeeded()
    print(done.out)
    profile = load(path)
    check_closure(profile)
    lost, off = profile.lost["ns of intervals"], sum(thread.wall - thread.on_cpu for thread in profile.threads)
    assert (profile.lost["intervals"] > 0) is (lost > 0)
    assert ("without room: raise --table-size" in done.out) is (lost > 0)
    assert sum(sample.values[0] for sample in profile.samples) + lost == pytest.approx(off, rel=0.01)


def test_programs_have_no_btf() -> None:
    """Programs, and what they call, have no type information: see also tests/tracers/engines/bcc/test_programs.py."""
    made = make(Choice(samples=True))
    tables = Tables(1024)
    try:
        attached = Attached(made, tables.descriptors, 99)
        try:
            assert set(attached.programs) == {"on_switch", "on_wakeup", "on_new_task", "on_exec", "on_sample"}
            for fd in attached.programs.values():
                info = ctypes.create_string_buffer(256)
                bpf(INFO_BY_FD, struct.pack("=IIQ", fd, len(info), ctypes.addressof(info)))
                (kind,) = struct.unpack_from("=I", info)
                assert kind in (Program.TRACEPOINT, Program.PERF_EVENT)
                assert struct.unpack_from("=I", info, BTF_ID) == (0,)
        finally:
            attached.close()
    finally:
        tables.close()
