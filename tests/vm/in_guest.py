"""The checks that run inside a guest: ``python in_guest.py CHECK``.

Each is a function that returns what it measured, as one line for docs/kernels.md, and raises AssertionError where that
is wrong. Time is less exact under emulation: the bounds are wider than those of tests/live, and stand here.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ask_check
import engine_checks  # noqa: F401  # has checks
import numpy as np
import nvidia_check  # noqa: F401  # has checks
import stap_calls_check
import stap_check
import stap_modules
import stap_trouble  # noqa: F401  # has checks
import verifier
from checks import CHECKS, check
from peers import wait_for_link
from runner import FOLDER, Workload
from stacks_truth import reaches_start
from stallscope.converters import pprof
from stallscope.converters.model import Profile, Sample
from stallscope.converters.model.locks import OWNER, SHARED
from stallscope.converters.model.phases import STATES, phases
from stallscope.converters.model.states import RUNNING
from stallscope.converters.model.wakers import has_waker, links, own_part
from stallscope.converters.transforms.critical_path import critical_path, thread_of
from stallscope.tracers.apis import events as apis_of_events
from stallscope.tracers.apis.events import EventTarget
from stallscope.tracers.apis.wanted import Library, Wanted
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf.assemble import profile_of
from stallscope.tracers.engines.ebpf.probes import ProbeOptions, Probes
from stallscope.tracers.engines.ebpf.session import Session
from stallscope.tracers.kernel.libbpf import BpfError
from stallscope.tracers.kernel.records import MAX_FRAMES, RecordSink
from stallscope.tracers.kernel.shapes import BTF_SHAPES, RAW_SHAPES, kernel_helpers, reason
from stallscope.tracers.kernel.uprobes import best_way
from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.measures.events import Events
from stallscope.tracers.measures.ioctl import Ioctl
from stallscope.tracers.measures.kernel_calls import KernelCalls
from stallscope.tracers.measures.locks import Locks, kernel_knows_caches, kernel_tells
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu
from stallscope.tracers.measures.protocol import Measure
from stallscope.tracers.measures.timeline import Timeline
from stallscope.tracers.measures.wakeup import WakeUp
from tracing import Traced, run_traced

ROOT = Path(__file__).resolve().parents[2]
SHARE = Path("/run/share")
TRACE = str(ROOT / ".venv/bin/trace-offcpu")
MS = 1_000_000
NSEC = 1_000_000_000
HZ = 499
TIMES = 0.10
"""Share by which a function's time may differ from the workload's own clock, and 10 ms."""
COUNTS = 0.02
"""Share by which the number of waits may differ from the kernel's own count of voluntary switches, and one: on 7.2 the
kernel has been seen to count one wait of 50 in nanosleep(2) as involuntary."""
SHARES = 0.06
"""By which a function's share of the samples may differ from its share of the thread's own clock."""
CLOSURE = 0.01
"""Share by which on-CPU, blocked and runnable time may miss a thread's wall time."""
WHOLE = 0.99
"""Share of the off-CPU time in stacks that reach the thread's start."""
WHOLE_AGAIN = 0.75
"""As `WHOLE`, of 8 s of the whole host after `trace-doctor --prepare`. Reading tables takes a second or two here, and
`-a` does not wait for that."""
WHOLE_FROM_START = 0.75
"""As `WHOLE`, of a command of some seconds: it takes a moment to learn what the loader has mapped, and a moment is ten
times as long here. tests/live/test_cold.py demands more."""
PEERS = 0.05
"""Share by which offcputime's total may differ from ours. Of a wait of 1 ms the two programs themselves, one after the
other at each switch, are more than that under emulation."""
LONG_MS = 300_000
"""How long a workload runs that is ended by us: a tracer may take long to begin on a busy host."""


def traced(name: str, *arguments: object, measures: tuple[Measure, ...] = (), **options: Any) -> Traced:
    with Workload(name, *arguments, linger=True) as workload:
        scope = Scope(pids=list(workload.pids))
        scope.resolve()
        return run_traced(workload, ProbeOptions(scope, measures or (OffCpu(),), **options), None)


def run(*command: str, timeout: float = 120) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    said = done.stdout + done.stderr
    assert done.returncode == 0, f"{' '.join(command)}: status {done.returncode}\n{said}"
    return said


def profile_by(*arguments: str, timeout: float = 120) -> Profile:
    """What trace-offcpu writes when it is called so."""
    output = Path("/run/profile.pb.gz")
    print(run(TRACE, "--force", "-o", str(output), *arguments, timeout=timeout))
    with output.open("rb") as file:
        return pprof.load(file)


def whole_share(profile: Profile) -> float:
    """Of the off-CPU time with user stacks, how much is in stacks that reach the thread's start.

    Those that are cut at the limit of frames cannot.
    """
    time: Counter[bool] = Counter()
    broken: Counter[str] = Counter()
    for sample in profile.samples:
        native = [frame.name for frame in sample.stack if frame.kind == "native"]
        if 0 < len(native) < MAX_FRAMES:
            whole = reaches_start(sample.stack)
            time[whole] += sample.values[0]
            broken[" → ".join(native[-6:])] += 0 if whole else sample.values[0]
    assert time.total(), "no user stacks"
    for stack, ns in broken.most_common(5):
        print(f"{ns / time.total():7.2%} {stack}")
    return time[True] / time.total()


def told_share(profile: Profile) -> float:
    """The share of complete stacks that the profile tells of itself, for programs whose outermost frame has no name."""
    told = re.search(r"([\d.]+)% of the time in user code is in complete stacks", "\n".join(profile.comments))
    return float(told[1]) / 100 if told else 1.0  # nothing is said when there is nothing to say


@check
def load() -> str:
    """Every program in every shape for which the kernel has the helpers, with margins."""
    helpers = kernel_helpers()
    wanted = [shape for shape in BTF_SHAPES if helpers.issuperset(shape.needs)]
    assert wanted, "no shape is for this kernel"
    lines = []
    for shape in (*wanted, *RAW_SHAPES):
        for program in verifier.programs(shape):
            print(f"{shape.name}: {program}")
            lines.append(program)
            assert program.instructions <= 0.9 * verifier.MOST_INSTRUCTIONS, program
            assert program.stack <= 0.9 * verifier.MOST_STACK, program
    worst = max(lines, key=lambda program: program.stack)
    longest = max(lines, key=lambda program: program.instructions)
    return (
        f"{len(wanted)} of {len(BTF_SHAPES)} shapes and the raw one; at most {worst.stack} of 512 bytes of stack "
        f"({worst.name}), {longest.instructions:,} instructions verified ({longest.name})"
    )


@check
def doctor() -> str:
    said = run(str(ROOT / ".venv/bin/trace-doctor"))
    (programs,) = re.findall(r"ok +BPF programs: loaded and attached in (\d+) ms \((.*)\)", said)
    assert (
        "trace-offcpu, trace-oncpu, trace-wall, trace-wakeup, trace-ioctl, trace-cuda and trace-func can run here"
        in said
    )
    return f"{programs[1]}; attached after {programs[0]} ms"


@check
def truth() -> str:
    """Times and counts of functions with frame pointers against the workloads' own clocks."""
    worst = 0.0
    for name, arguments in (
        ("sleeps", (8,)),
        ("futex_pingpong", (500,)),
        ("pipe_chain", (4, 200)),
        ("fork_storm", (50, 2)),
    ):
        found = traced(name, *arguments)
        _check_closure(found)
        differs = _check_times(found, per_thread=name != "fork_storm")
        worst = differs if name == "sleeps" else worst
        for kind in ("intervals", "stacks", "threads", "exit and exec records", "address space records"):
            assert not found.profile.lost[kind], (name, kind, found.profile.lost[kind])
    spinners = traced("two_spinners", 1000)
    for thread in spinners.truth["threads"]:
        inside = spinners.samples("spin", thread["tid"])
        waited = sum(sample.values[0] for sample in inside if sample.label("state") == "runnable-preempted")
        assert abs(waited - thread["runnable_ns"]) <= _slack(thread["runnable_ns"]), (waited, thread)
    close = f"counts within {COUNTS:.0%}, accounts closed within {CLOSURE:.0%}"
    return f"sleeps within {worst:.1%} of their own clock, {close}"


@check
def wall() -> str:
    """All of the time of threads, running and not, in one profile; and what a spinner's functions share."""
    measures = OffCpu(time="wall"), OnCpu(HZ, time="wall")
    for name, arguments in (
        ("sleeps", (8,)),
        ("two_spinners", (1000,)),
        ("fork_storm", (50, 2)),
        ("pipe_chain", (4, 200)),
    ):
        found = traced(name, *arguments, measures=measures)
        _check_closure(found)
        _check_sums(found)
    found = traced("shares", 4000, measures=measures)
    _check_closure(found)
    _check_sums(found)
    busy = sum(part["ns"] for part in found.truth["waits"])
    running = [sample for sample in found.profile.samples if sample.label("state") == "running"]
    seen = Counter[str]()
    for part in found.truth["waits"]:
        name = part["function"]
        seen[name] = sum(s.values[0] for s in running if any(frame.name == name for frame in s.stack))
    worst = max(abs(seen[part["function"]] / seen.total() - part["ns"] / busy) for part in found.truth["waits"])
    print(seen, found.truth["waits"])
    assert worst <= SHARES, worst
    taken = sum(sample.values[4] for sample in running)
    assert taken >= seen.total() / NSEC * HZ / 2, (taken, seen.total())
    whole = sum(s.values[4] for s in running if reaches_start(s.stack))
    assert whole >= WHOLE * taken, (whole, taken, found.profile.comments)
    return f"samples sum to the threads' time; shares of five functions within {worst:.1%} by {taken:,} samples"


@check
def ioctl() -> str:
    """Every call of programs that timed their own: its number, its time, and what that time was."""
    worst, calls, kept = 0.0, 0, 0
    for what, count in (("tty", 500), ("tun", 50)) if Path("/dev/net/tun").exists() else (("tty", 500),):
        found = traced("ioctls", what, 2, count, measures=(Ioctl(),))
        lost = {kind: found.profile.lost[kind] for kind in Ioctl().losses()}
        unreported = lost.pop("ioctls not reported by the kernel")
        for truth in found.truth["waits"]:
            (call,) = [c for c in found.profile.calls if (c.name, c.pid) == (truth["function"], truth["pid"])]
            assert call.count == sum(call.latencies), call
            assert call.count <= truth["calls"] <= call.count + unreported, (call, truth, unreported)
            assert call.total <= truth["ns"], (call, truth)
            assert call.on_cpu >= 0, call
            worst = max(worst, (truth["ns"] - call.total) / truth["calls"])
            calls += call.count
        samples = sum(sample.values[0] for sample in found.profile.samples)
        assert samples == sum(call.total for call in found.profile.calls), samples
        kept += unreported
        lost.pop("returns from ioctls") if unreported else None
        assert not any(lost.values()), lost
    counted = f"all but {kept:,} counted, which the kernel did not report" if kept else "all counted"
    return f"{calls:,} calls, {counted}; their own clock differs by at most {worst / 1000:.1f} µs a call on average"


@check
def calls() -> str:
    """Every call of functions that measured what they did, in the best way that the kernel has."""
    way, worst, number = best_way(), 0.0, 0
    wanted = Wanted(libraries=(Library.at(str(FOLDER / "sleeps")),), symbols=re.compile("^sleep_"))
    found = traced("sleeps", 40, measures=(Calls(wanted),))
    timed = {(call.name, call.pid): call for call in found.profile.calls}
    for truth in found.truth["waits"]:
        call = timed[truth["function"], truth["pid"]]
        assert call.count == truth["calls"] == sum(call.latencies), (call, truth)
        assert call.total >= truth["ns"], (call, truth)
        worst = max(worst, (call.total - truth["ns"]) / truth["calls"])
        number += call.count
    assert not any(found.profile.lost[kind] for kind in Calls().losses()), found.profile.lost
    more = f"at most {worst / 1000:.1f} µs longer than what they measured inside; {_joined()}"
    return f"{number:,} calls, all counted, by {way.title}; {more}"


def _joined() -> str:
    """Ioctls are parts of the calls that make them: each is counted, and so is each ns, once."""
    wanted = Wanted(libraries=(Library.at(str(FOLDER / "ioctls")),), symbols=re.compile("^get_sizes$"))
    ioctls = Ioctl(alone=False)
    profile = traced("ioctls", "inside", 2, 200, measures=(ioctls, Calls(wanted, ioctls=ioctls))).profile
    unreported = profile.lost["ioctls not reported by the kernel"]
    made = sum(each.count for each in profile.call_ioctls)
    assert made <= 2 * 2 * 200 <= made + unreported, (made, unreported)
    assert {each.command for each in profile.call_ioctls} == {"TIOCGWINSZ"}
    calls = [call for call in profile.calls if call.library]
    assert sum(call.count for call in calls) == 2 * 200, calls
    assert sum(sample.values[0] for sample in profile.samples) == sum(call.own for call in calls)
    ioctl_time = sum(s.values[0] for s in profile.samples if any("TIOCGWINSZ" in frame.name for frame in s.stack))
    assert ioctl_time == sum(each.total for each in profile.call_ioctls)
    return f"{made} ioctls in 400 other calls are told as their parts"


@check
def func() -> str:
    """What trace-func counts: USDT probes, tracepoints, and functions of the kernel, with their stacks; and the time of
    the latter."""
    usdt = traced("usdt", 100, measures=(_events(f"u:{FOLDER}/usdt:*"),)).profile
    assert _counts(usdt) == {"shop:sale": 100, "shop:look": 300, "shop:audit": 100}, usdt.calls
    places = "t:syscalls:sys_enter_nanosleep", "k:hrtimer_nanosleep"
    found = traced("sleeps", 20, measures=(_events(*places),))
    sleeps = sum(wait["calls"] for wait in found.truth["waits"])
    assert _counts(found.profile) == {"syscalls:sys_enter_nanosleep": sleeps, "hrtimer_nanosleep": sleeps}
    whole = Counter[bool]()
    for sample in found.profile.samples:
        names = [frame.name for frame in sample.stack]
        of_kernel = "hrtimer_nanosleep" in names and "do_syscall_64" in names
        whole[any(name[:6] == "sleep_" for name in names) and of_kernel] += sample.values[0]
    print(whole, [sample.stack for sample in found.profile.samples][:4])
    # The tracepoint is before the function.
    assert whole[True] == sleeps, whole
    for profile in (usdt, found.profile):
        assert not any(profile.lost[kind] for kind in ("events", "stacks of events")), profile.lost
    _check_kernel_calls()
    hits = sum(_counts(usdt).values())
    return f"{hits} hits of USDT probes, {sleeps} of a tracepoint and of a function of the kernel, which is timed, too"


def _check_kernel_calls() -> None:
    """Each is timed, and what it did meanwhile was to be blocked."""
    found = traced("sleeps", 20, measures=(KernelCalls(("hrtimer_nanosleep", "do_nanosleep")),))
    sleeps, ns = (sum(wait[key] for wait in found.truth["waits"]) for key in ("calls", "ns"))
    calls = {call.name: call for call in found.profile.calls}
    print(calls, found.truth["waits"], found.profile.comments)
    for call in calls.values():
        assert call.count == sleeps == sum(call.latencies), call
        assert 0.8 * ns <= call.total <= ns, (call, ns)
        assert call.blocked >= 0.8 * call.total, call
        assert call.device == "kernel", call
    assert calls["hrtimer_nanosleep"].inner == calls["do_nanosleep"].total
    samples = sum(sample.values[0] for sample in found.profile.samples)
    assert samples == calls["hrtimer_nanosleep"].total, samples
    inside = [sample for sample in found.profile.samples if any(f.name == "do_nanosleep kernel" for f in sample.stack)]
    assert sum(s.values[0] for s in inside if s.label("state") == "interruptible") >= 0.8 * ns, inside
    assert any(frame.name == "sleep_1ms" for sample in inside for frame in sample.stack)


def _events(*texts: str) -> Events:
    return Events(apis_of_events.Events.all_of([], map(EventTarget.parse, texts)))


def _counts(profile: Profile) -> dict[str, int]:
    found = Counter[str]()
    for call in profile.calls:
        found[call.name] += call.count
    return dict(found)


@check
def timeline() -> str:
    """The scheduler's events: none lost, in order, and the accounts are their sums."""
    counted = 0
    for name, arguments in (("pipe_chain", (4, 200)), ("fork_storm", (50, 2)), ("two_spinners", (1000,))):
        found = traced(name, *arguments, measures=(OffCpu(), Timeline()))
        scheduling = found.profile.scheduling
        assert scheduling is not None
        assert not sum(scheduling.lost().values()), (name, scheduling.lost())
        for times in found.profile.threads:
            rows = np.flatnonzero((scheduling.threads["tid"] == times.tid) & (scheduling.threads["tgid"] == times.pid))
            mine = phases(scheduling)
            mine = mine[np.isin(mine["thread"], rows)]
            ran = int((mine["end"] - mine["begin"])[mine["state"] == STATES.index(RUNNING)].sum())
            assert abs(ran - times.on_cpu) <= CLOSURE * times.wall, (name, times, ran)
        counted += scheduling.count()
    return f"{counted:,} events, none lost; what they say of running is what the accounts say"


@check
def wakeup() -> str:
    """Who ended each wait: the stage before, with its own stack; a timer; and all of the blocked time is told."""
    found = traced("pipe_chain", 4, 200, 200, measures=(OffCpu(), WakeUp(4, alone=False)))
    column = found.profile.index("blocked")
    told, right, stacks = Counter[bool](), Counter[str](), Counter[bool]()
    for sample in found.profile.samples:
        is_wakeup = has_waker(sample.stack)
        told[is_wakeup] += sample.values[column if is_wakeup else 0] if not _is_runnable(sample) else 0
        process = str(sample.label("process"))
        if is_wakeup and process.startswith("stage-") and "read_token" in [f.name for f in own_part(sample.stack)]:
            before = f"stage-{(int(process[-1]) - 1) % 4}-"
            waker = str(sample.label("waker"))
            right[before if waker.startswith(before) else waker] += sample.values[column]
            if waker.startswith("stage-"):
                names = [frame.name for frame in links(sample.stack)[0]]
                stacks["write_token" in names and "read_token" not in names] += sample.values[column]
    assert told[True] == told[False] > 0, told
    share = sum(time for name, time in right.items() if name.startswith("stage-")) / right.total()
    assert share >= 0.95, right
    whose = stacks[True] / stacks.total()
    assert whose >= 0.95, stacks
    slept = traced("sleeps", 20, measures=(WakeUp(),))
    woken = Counter[str]()
    for sample in slept.profile.samples:
        if any(frame.name.startswith("sleep_") for frame in sample.stack):
            woken[str(sample.label("waker"))] += sample.values[0]
    timer = woken["[timer]"] / woken.total()
    assert timer >= 0.95, woken
    by = f"{share:.1%} of the time in a ring of pipes by the right process, {whose:.1%} with its stack"
    return f"{by}; {timer:.1%} of sleeps by a timer"


@check
def locks() -> str:
    """A mutex between processes with its holder; a lock of the kernel, or the reason why not; a critical path."""
    found = traced("mutexes", "shared", 4, 20, 10_000, measures=(WakeUp(), Locks()))
    lock = max(found.profile.locks, key=lambda each: each.time)
    assert (lock.kind, lock.owned_by) == ("mutex", SHARED), lock
    assert sum(thread.thread.startswith("waiter") for thread in lock.waiters) == 4, lock.waiters
    best = lock.holders[0]
    share = best.time / lock.time
    assert (best.thread, best.source) == ("holder", OWNER), lock.holders
    assert share >= 0.75, lock.holders
    assert not any(found.profile.lost[kind] for kind in ("waits for locks", "holders of locks")), found.profile.lost
    kernel = "locks of the kernel are not told"
    assert kernel_tells() or any(comment.startswith(kernel) for comment in found.profile.comments)
    if kernel_tells():
        written = traced("mutexes", "inode", 4, 40, measures=(WakeUp(), Locks()))
        semaphore = max((each for each in written.profile.locks if each.kind == "rwsem"), key=lambda each: each.time)
        assert semaphore.holders and semaphore.holders[0].source == OWNER, semaphore
        if kernel_knows_caches():
            assert "_inode_info.vfs_inode.i_rwsem at 0x" in semaphore.name, semaphore
        memory = traced("mutexes", "memory", 4, 60, measures=(WakeUp(), Locks()))
        assert "mm_struct.mmap_lock" in {each.name for each in memory.profile.locks}, memory.profile.locks
        kernel = f"a rwsem with {semaphore.waits} waits and its owners; mm_struct.mmap_lock by its name"
    path = traced("waits_through", 4, 20, measures=(WakeUp(), Timeline()))
    assert path.profile.scheduling is not None
    main = thread_of(path.profile.scheduling, path.truth["pid"])
    segments = critical_path(path.profile.scheduling, main)
    assert abs(segments.wall - path.thread(path.truth["pid"]).wall) <= CLOSURE * segments.wall
    assert max(len(segment.behind) for segment in segments.segments) == 2
    return f"{share:.1%} of the waits for a mutex of several processes by its holder; {kernel}; a path of 3 threads"


def _is_runnable(sample: Sample) -> bool:
    return str(sample.label("state")).startswith("runnable")


@check
def quota() -> str:
    """A control group of version 2 with half a core: the answer names it, with what it stopped."""
    top = Path("/sys/fs/cgroup")
    if not (top / "cgroup.controllers").exists():
        run("/bin/mount", "-t", "cgroup2", "cgroup2", str(top))
    (top / "cgroup.subtree_control").write_text("+cpu")
    group = top / "half-a-core"
    group.mkdir()
    (group / "cpu.max").write_text("50000 100000")
    with Workload("crowd", 60_000, 4, 2) as workload:
        (group / "cgroup.procs").write_text(str(workload.pid))
        workload.release()
        output = Path("/run/quota.pb.gz")
        said = run(TRACE, "-p", str(workload.pid), "-d", "5", "--force", "-o", str(output), timeout=300)
        workload.kill()
    print(said)
    told = " ".join(said.split())
    found = re.search(r"A quota throttles crowd: control group /half-a-core may use 0\.5 cores, and used [^;]+", told)
    assert found, said
    return found[0]


def _check_sums(found: Traced) -> None:
    """A thread's samples are its time: what it ran, waited for a core and was blocked."""
    sums = Counter[tuple[object, object]]()
    for sample in found.profile.samples:
        sums[sample.label("pid"), sample.label("tid")] += sample.values[0]
    accounts = Counter[tuple[object, object]]()
    for times in found.profile.threads:
        accounts[times.pid, times.tid] += times.on_cpu + times.runnable + sum(times.blocked.values())
    for who, account in accounts.items():
        assert abs(sums[who] - account) <= CLOSURE * account, (who, sums[who], account)


def _slack(ns: int) -> float:
    return max(TIMES * ns, 10 * MS)


def _check_times(found: Traced, *, per_thread: bool) -> float:
    """The largest share by which a function's time differs."""
    worst = 0.0
    for wait in found.truth["waits"]:
        tid = wait["tid"] if per_thread else None
        function, ns = wait["function"], wait["ns"]
        blocks = found.blocks(function, tid)
        most = max(1, COUNTS * blocks)
        if not blocks - most <= wait["blocks"] <= blocks + found.unseen + most:
            for sample in found.samples(function, tid):
                print(sample.values, sample.labels, " → ".join(frame.name for frame in sample.stack[-12:]))
            raise AssertionError((function, blocks, wait, found.counters))
        busy = sum(t["cpu_ns"] for t in found.truth["threads"] if tid in (None, t["tid"])) + found.preempted(tid)
        waited = found.waited(function, tid)
        print(f"{function}: {waited / MS:.1f} ms of {ns / MS:.1f} ms, {blocks} waits of {wait['blocks']}")
        assert ns - busy - found.stolen - _slack(ns) <= waited <= ns + _slack(ns), (function, waited, busy, wait)
        if ns > 50 * MS:
            worst = max(worst, abs(ns - waited) / ns)
    return worst


def _check_closure(found: Traced) -> None:
    for times in found.profile.threads:
        together = times.on_cpu + times.runnable + sum(times.blocked.values())
        assert abs(together - times.wall) <= CLOSURE * times.wall, times


@check
def stacks() -> str:
    """Programs without frame pointers, on an empty cache, with threads that sleep from the start."""
    shares = {}
    for name, arguments in (("python_threads", (1500,)), ("cpp_frames", (1500,)), ("call_paths", ("near", 2))):
        found = traced(name, *arguments)
        shares[name] = whole_share(found.profile)
        print(f"{name}: {shares[name]:.2%} in whole stacks")
    assert min(shares.values()) >= WHOLE, shares
    return ", ".join(f"{name} {share:.2%}" for name, share in shares.items()) + " in whole stacks"


@check
def python() -> str:
    """The Python functions of threads that wait."""
    found = traced("python_frames", 3000, python=True)
    by_name = {wait["function"]: wait["tid"] for wait in found.truth["waits"]}
    for name, truth in found.truth["stacks"].items():
        expected = [(qualified, line) for qualified, _, line in truth]
        (still,) = [s for s in found.profile.samples if s.label("tid") == by_name[name] and s.label("open")]
        functions = [(frame.name, frame.line) for frame in still.stack if frame.kind == "python"]
        assert functions == expected, (name, functions, expected)
    waits = sum(wait["calls"] for wait in found.truth["waits"])
    failed = found.counters["python_stacks_failed"]
    assert failed <= waits / 50, (failed, waits)
    version = ".".join(map(str, found.truth["version"]))
    return f"{version}, {len(by_name)} threads, {waits:,} waits, {failed} stacks not readable"


@check
def everything() -> str:
    """The whole host."""
    shares = []
    for seconds in ("3", "8"):
        with Workload("python_threads", LONG_MS, linger=True) as workload:
            if shares:
                run(str(ROOT / ".venv/bin/trace-doctor"), "--prepare", timeout=300)
            workload.release()
            profile = profile_by("-a", "-d", seconds, timeout=300)
            found = {sample.label("pid") for sample in profile.samples}
            assert workload.pid in found, (Path(f"/proc/{workload.pid}/status").read_text(), found)
        shares.append(told_share(profile))
        assert profile.lost["intervals"] == profile.lost["threads"] == 0
    first, again = shares
    assert again >= WHOLE_AGAIN, (first, again)
    return f"{len(found)} processes, {first:.1%} in whole stacks on an empty cache, {again:.1%} when it was prepared"


@check
def demo() -> str:
    """Eight processes that serialise behind one call."""
    run("/sbin/modprobe", "tun") if not Path("/dev/net/tun").exists() else None
    # Eight busy processes leave the compiler of the tables little, and the demo ends after half a minute.
    run(str(ROOT / ".venv/bin/trace-doctor"), "--prepare", str(FOLDER / "demo"))
    said = run(sys.executable, str(ROOT / "tests/workloads/demo.py"), "--processes", "8", "--seconds", "5", timeout=300)
    print(said)
    assert "topk → cudaGetDeviceProperties → ioctl" in said, said
    (share,) = re.findall(r"([\d.]+) % of the time of the 8 worker threads", said)
    assert float(share) > 50, said
    assert "blocked in the ioctl TUNSETQUEUE of /dev/net/tun" in said, said
    return f"{share} % of the workers' time in the driver's call"


@check
def storms() -> str:
    """Processes that come and go, programs that become others, and ends by SIGKILL."""
    storm = traced("fork_storm", "--exec", 100, 4)
    names = {s.label("process") for s in storm.samples("exec_child_sleep")}
    assert names == {"storm_child"}, names
    chain = traced("exec_chain", 3, 180)
    share = whole_share(chain.profile)
    killed = _killed()
    assert killed.samples, "nothing was seen of a target that was killed"
    tracer = subprocess.Popen([TRACE, "-a", "-o", "/run/never.folded"])
    wait_for_link(tracer.pid)
    time.sleep(1)
    tracer.send_signal(signal.SIGKILL)
    tracer.wait()
    deadline = time.monotonic() + 10
    while (left := _programs_left()) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not left, left
    return f"100 children named, {share:.1%} whole across execs, nothing left behind by SIGKILL"


def _killed() -> Profile:
    """A target that SIGKILL ends while it is traced."""
    with Workload("sleeps", 1000) as workload:
        workload.release()
        scope = Scope(pids=list(workload.pids))
        scope.resolve()
        sink = RecordSink()
        engine = Probes(ProbeOptions(scope, (OffCpu(),)), sink)
        polls = itertools.count()
        try:
            session = Session(engine, None, 60)
            capture = session.run(sink, lambda *_: workload.kill() if next(polls) == 20 else None)
        finally:
            engine.close()
        assert capture.stopped - capture.began < 60e9, "the trace did not end with its target"
        return profile_of(capture, "Off-CPU time")


def _programs_left() -> list[str]:
    """BPF programs that are in the kernel though no tracer runs."""
    import ctypes

    from stallscope.tracers.kernel.libbpf import library

    next_id = library().bpf_prog_get_next_id
    next_id.argtypes, next_id.restype = [ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32)], ctypes.c_int
    found, number = [], ctypes.c_uint32(0)
    while next_id(number.value, ctypes.byref(number)) == 0:
        found.append(str(number.value))
    return found


@check
def command() -> str:
    """A command from its first instruction, on an empty cache."""
    script = "import time, threading\nfor _ in range(30): time.sleep(0.05)"
    shares = {}
    for name, *line in (("python3", "/usr/bin/python3", "-c", script), ("sleeps", str(FOLDER / "sleeps"), "20")):
        shares[name] = told_share(profile_by("--", *line, timeout=300))
    assert min(shares.values()) >= WHOLE_FROM_START, shares
    return ", ".join(f"{name} {share:.2%}" for name, share in shares.items()) + " in whole stacks on an empty cache"


@check
def peer() -> str:
    """libbpf-tools' offcputime beside ours, on the same process at the same time."""
    found: dict[str, float] = {}
    with Workload("sleeps", 40, linger=True) as workload:
        theirs = subprocess.Popen(
            ["/usr/sbin/offcputime", "-p", str(workload.pid), "30"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for_link(theirs.pid)
        scope = Scope(pids=list(workload.pids))
        scope.resolve()
        ours = run_traced(workload, ProbeOptions(scope, (OffCpu(),)), None)
        theirs.send_signal(signal.SIGINT)
        said, errors = theirs.communicate(timeout=60)
    assert theirs.returncode == 0, errors
    functions = {wait["function"] for wait in ours.truth["waits"]}
    for block in said.split("\n\n"):
        total = re.search(r"^\s+(\d+)\s*$", block, re.MULTILINE)
        # Two stacks whose hashes meet: it has lost one, but its time belongs to the total.
        lost = "[Missed User Stack]" in block and "do_nanosleep" in block
        for function in functions | {"lost"}:
            if total and (lost if function == "lost" else re.search(rf"\b{function}\b", block)):
                found[function] = found.get(function, 0) + int(total[1]) * 1000
    mine = {wait["function"]: ours.waited(wait["function"]) for wait in ours.truth["waits"]}
    for function, ns in mine.items():
        assert function in found or "lost" in found, said[:3000]
        print(f"{function}: ours {ns / MS:.1f} ms, offcputime {found.get(function, 0) / MS:.1f} ms")
    differs = abs(sum(mine.values()) - sum(found.values())) / sum(mine.values())
    print(f"offcputime's lost stacks: {found.get('lost', 0) / MS:.1f} ms")
    assert differs <= PEERS, (differs, said[:3000])
    return f"the same {len(mine)} functions, totals within {differs:.1%}"


@check
def ask() -> str:
    """Questions about calls: all that took more than 0.5 ms, and slow ones alone."""
    lines: list[str] = []
    found = traced("sleeps", 20, measures=(ask_check.calls(lines),))
    number = ask_check.check(found, lines, ask_check.functions(1, 10, 25))
    lines = []
    slow = traced("sleeps", 20, measures=(ask_check.calls(lines, over=20_000_000),))
    return f"{number} calls, and {ask_check.check(slow, lines, ask_check.functions(25))} slow ones alone"


@check
def stap() -> str:
    """The engine stap beside libbpf, on the same process at the same time; traces that end in every way."""
    return stap_check.run(_module())


@check
def stap_ioctl() -> str:
    """trace-ioctl with both engines."""
    return stap_calls_check.ioctl(_module())


@check
def stap_wakeup() -> str:
    """trace-wakeup with both engines."""
    return stap_calls_check.wakeup(_module())


@check
def stap_cuda() -> str:
    """trace-cuda with both engines."""
    return stap_calls_check.cuda(_module())


def _module() -> Path:
    return stap_modules.module_of(os.environ["STALLSCOPE_VM"], sys.argv[1])


@check
def wheel() -> str:
    """The wheel in an environment of its own, in memory."""
    wheels = ROOT / "build" / "vm-wheels"
    (ours,) = wheels.glob("stallscope-*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", "/run/wheel", timeout=300)
    pip = [sys.executable, "-m", "pip", "--python", "/run/wheel/bin/python", "install", "--quiet", "--no-compile"]
    pip += ["--no-index", "--find-links", str(wheels), str(ours)]
    run(*pip, timeout=300)
    command = "/run/wheel/bin/trace-offcpu"
    with Workload("sleeps", 1000) as workload:
        workload.release()
        run(command, "-p", str(workload.pid), "-d", "2", "-o", "/run/wheel.folded")
    assert "sleep_10ms" in Path("/run/wheel.folded").read_text()
    return run(command, "--version").strip()


@check
def refused() -> str:
    """A kernel that is too old is refused in one line, which names the kernel that is needed and another way."""
    done = subprocess.run([TRACE, "-a", "-d", "1"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    cause, remedy = done.stderr.strip().splitlines()
    pattern = (
        r"trace-offcpu: this kernel \(\S+\) is too old for the probes: it lacks bpf_\w+\(\); they need \S+ \S+ or newer"
    )
    assert re.fullmatch(pattern, cause), cause
    assert "perf sched record" in remedy
    doctor = subprocess.run([str(ROOT / ".venv/bin/trace-doctor")], capture_output=True, text=True, timeout=60)
    assert doctor.returncode == 1
    assert cause.split(": ", 1)[1] in doctor.stdout
    return cause.split(": ", 1)[1]


@contextlib.contextmanager
def _answer() -> Iterator[dict[str, Any]]:
    answer: dict[str, Any] = {"ok": False, "figures": "", "failure": ""}
    try:
        yield answer
        answer["ok"] = True
    except AssertionError as error:
        traceback.print_exc()
        where = traceback.format_exc().splitlines()[-2].strip()
        answer["failure"] = str(error).splitlines()[0] if str(error) else where
    except BpfError as error:
        print(*error.log, sep="\n")
        answer["failure"] = f"{error} ({error.program}: {reason(error.log)})"
    except Exception as error:
        traceback.print_exc()
        answer["failure"] = f"{type(error).__name__}: {error}".splitlines()[0]
    finally:
        (SHARE / "answer.json").write_text(json.dumps(answer))


def main() -> int:
    os.environ["STALLSCOPE_CACHE"] = "/run/cache"
    with _answer() as answer:
        answer["figures"] = CHECKS[sys.argv[1]]()
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
