"""The check of a driver that makes processes wait for each other, in a guest: the stand-in for NVIDIA's (nvidia/).

Eight processes call cudaGetDeviceProperties of the stand-in library. Two clocks know what is to be found: that of the
workload around each call, and that of the module around each lock.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import stap_check
import stap_modules
from runner import Workload
from stallscope.converters.model import Profile, Sample
from stallscope.converters.model.locks import OWNER
from stallscope.converters.summary.render import render
from stallscope.converters.summary.summarize import summarize
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf.measures.ioctl import IoctlCollector
from stallscope.tracers.engines.ebpf.probes import ProbeOptions
from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.measures.ioctl import Ioctl
from stallscope.tracers.measures.locks import Locks
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu
from stallscope.tracers.measures.protocol import Measure
from stallscope.tracers.measures.wakeup import WakeUp
from stallscope.tracers.probe_targets.wanted import Wanted
from standin_driver import module_file
from tracing import Traced, collecting, run_traced

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = 8
CALLS = 25
HOLD_US = 2000
HZ = 499
TIMES = 0.05
"""Share by which a time may differ from the workload's clock, or the module's."""
SAMPLED = 20_000_000
"""ns by which it may differ besides if a part of it was sampled."""
SHARES = 0.10
"""Difference between a share of the samples and a share of the time, at most: samples are of long spells more often
than of those that end within the length of one."""
MONITOR_CALLS, MONITOR_US = 30, 20_000
"""Calls of the ranks beside a process that holds the lock for so long, again and again."""
BY_MONITOR, SEEN = 0.9, 0.25
"""Share of the waits for the lock in which the monitor has it, at least; and for which the lock itself tells that. For
others it is told who ended them: if such a wait began while readers had the lock and the monitor was the next."""
MISSED = 0.005
"""Share of the waits that SystemTap may miss, and tell that it did, since another core was busy with its variables."""
QUERY = "cudaGetDeviceProperties"
DEVICE = "/dev/nvidiactl"
IN_DRIVER = ("nvidia_unlocked_ioctl", "nvidia_ioctl", "rm_ioctl")
WRITE, READ, GPU, POLL = "os_acquire_rwlock_write", "os_acquire_rwlock_read", "os_acquire_semaphore", "_kgspRpcRecvPoll"
QUERY_PATH = ("main", "rank", "topk")
IN_KERNEL = (*IN_DRIVER, WRITE, "rwsem_down_write_slowpath")
PATH = (*QUERY_PATH, QUERY, "ioctl", *IN_KERNEL)
WHOLE = 0.95
"""Share of the time in stacks that have all of it. On a busy host the first stacks come before the tables that unwind
them."""
CONTROLS = {
    "NV2080_CTRL_CMD_GPU_GET_NAME_STRING": "API lock read, all GPUs",
    "NV2080_CTRL_CMD_FB_GET_INFO_V2": "API lock read, one GPU",
    "NV2080_CTRL_CMD_GPU_GET_GID_INFO": "API lock read, one GPU",
    "NV2080_CTRL_CMD_GPU_GET_INFO_V2": "API lock read, one GPU",
    "NV0080_CTRL_CMD_GR_GET_INFO_V2": "API lock write, all GPUs",
    "NV2080_CTRL_CMD_PERF_GET_LEVEL_INFO_V2": "API lock write, all GPUs, GSP",
    "NV2080_CTRL_CMD_GPU_QUERY_ECC_STATUS": "API lock read, one GPU, GSP",
}
"""Commands that one call of the query makes, once each, and what each locks."""
WRITERS = tuple(name for name, locks in CONTROLS.items() if "write" in locks)
REFUSED = {"NV2080_CTRL_CMD_GPU_QUERY_ECC_STATUS": "NV_ERR_NOT_SUPPORTED"}

_PARAMETERS = Path("/sys/module/nvidia/parameters")


@dataclass(frozen=True)
class Ran:
    """A traced run, and what the module measured meanwhile: ns by counter, and the number of calls."""

    traced: Traced
    driver: dict[str, int]
    pids: tuple[int, ...]

    @property
    def profile(self) -> Profile:
        return self.traced.profile

    def truth(self, name: str, pid: int) -> int:
        return sum(w["ns"] for w in self.traced.truth["waits"] if (w["function"], w["pid"]) == (name, pid))


def nvidia() -> str:
    """Checks what is waited for, and the ioctls. Returns what was measured. AssertionError where it is wrong."""
    with _driver():
        waits = _check_waits(_ran(OffCpu()))
        counted = _check_ioctls(_ran(Ioctl()))
        ioctls = Ioctl(alone=False)
        _check_calls(_ran(ioctls, Calls(Wanted())))
    return (
        f"{' → '.join(PATH[2:])}: what processes wait within {waits:.1%} of their own clock; {counted:,} ioctls, all "
        "counted by name, and told as parts of the calls that make them"
    )


def nvidia_holder() -> str:
    """Checks who has the lock, asleep or on a core."""
    with _driver():
        slept = _check_holder(_ran(WakeUp(), Locks(), beside_monitor=True))
        _set("spin", 1)
        spun = _check_holder(_ran(WakeUp(), Locks(), beside_monitor=True))
        ran = _ran(OffCpu(time="wall"), OnCpu(HZ, time="wall"))
        locks = _check_locks(ran)
        polled = _check_polling(ran)
    return (
        f"the process that has the lock is named for {slept:.0%} of the waits if it sleeps, {spun:.0%} if it polls; "
        f"polling on a core within {polled:.1%} of the driver's own clock, time for locks within {locks:.1%}"
    )


def nvidia_stap() -> str:
    """trace-offcpu --engine stap beside libbpf, on the same processes at the same time."""
    output = "/run/nvidia.pb.gz"
    module = stap_modules.module_of(os.environ["STALLSCOPE_VM"], "nvidia_stap")
    with _driver(), _ranks(CALLS) as workload:
        tracer = stap_check.trace(module, "offcpu", workload.pids, output)
        ours = _traced(workload, OffCpu())
        theirs = Ran(Traced(stap_check.ended(tracer, output, by_us=False), ours.traced.truth), ours.driver, ours.pids)
    worst = [_check_waits(ran) for ran in (ours, theirs)]
    walls = Counter()  # a thread that loses its core while it ends was told twice once
    for times in theirs.profile.threads:
        walls[times.pid, times.tid] += times.wall
    assert max(walls.values()) <= theirs.profile.duration_ns, walls
    lost, switches = dict(theirs.profile.lost), sum(sample.values[1] for sample in theirs.profile.samples)
    assert lost.pop("events") <= MISSED * switches and not any(lost.values()), theirs.profile.lost
    both = [sum(sample.values[0] for sample in ran.traced.samples(WRITE)) for ran in (ours, theirs)]
    differs = _close(both[1], both[0], WRITE)
    return (
        f"{' → '.join(PATH[2:])}: what processes wait within {worst[1]:.1%} of their own clock, libbpf's within "
        f"{worst[0]:.1%}; for the lock within {differs:.1%} of libbpf's"
    )


@contextmanager
def _driver() -> Iterator[None]:
    """Loads the module, makes its device, and unloads it."""
    module = module_file(os.environ["STALLSCOPE_VM"])
    subprocess.run(["/sbin/insmod", str(module), f"hold_us={HOLD_US}"], check=True)
    try:
        subprocess.run(["/bin/mknod", DEVICE, "c", "195", "255"], check=True)
        os.environ["STANDIN_DEVICE"] = DEVICE
        yield
    finally:
        subprocess.run(["/sbin/rmmod", "nvidia"], check=True)


def _set(parameter: str, value: int) -> None:
    (_PARAMETERS / parameter).write_text(str(value))


def _counters() -> Counter[str]:
    names = ("calls", "api_write_ns", "api_read_ns", "gpu_ns", "gsp_ns")
    return Counter({name: int((_PARAMETERS / name).read_text()) for name in names})


@contextmanager
def _ranks(*arguments: object) -> Iterator[Workload]:
    with Workload("nvidia/topk_ranks", PROCESSES, *arguments) as workload:
        yield workload


def _ran(*measures: Measure, beside_monitor: bool = False) -> Ran:
    _set("hold_us", MONITOR_US if beside_monitor else HOLD_US)
    with _ranks(MONITOR_CALLS, "monitor") if beside_monitor else _ranks(CALLS) as workload:
        return _traced(workload, *measures)


def _traced(workload: Workload, *measures: Measure) -> Ran:
    scope = Scope(pids=list(workload.pids))
    scope.resolve()
    before = _counters()
    traced = run_traced(workload, ProbeOptions(scope, collecting(measures)), None)
    driver = {name: value - before[name] for name, value in _counters().items()}
    print("\n=====", *(measure.name for measure in measures), driver)
    render(summarize(traced.profile), sys.stdout, width=150)
    return Ran(traced, driver, tuple(workload.pids))


def names(sample: Sample) -> list[str]:
    return [frame.name for frame in sample.stack]


def has_path(sample: Sample, path: Sequence[str]) -> bool:
    """Whether these functions call each other in this order, others between them or not."""
    rest = iter(names(sample))
    return all(function in rest for function in path)


def _close(found: float, truth: float, what: object, slack: int = 0) -> float:
    """The share by which they differ. ``slack``: ns."""
    print(f"{what}: {found / 1e6:.1f} ms of {truth / 1e6:.1f} ms")
    assert abs(found - truth) <= TIMES * truth + slack, (what, found, truth)
    return abs(found - truth) / truth


def _check_path(ran: Ran) -> None:
    """Checks that those who are blocked for the lock show how they came there. (On the way, a thread may be taken off
    its core.)"""
    time: Counter[bool] = Counter()
    stacks: Counter[str] = Counter()
    for sample in ran.traced.samples(WRITE):
        if sample.label("state") == "uninterruptible":
            assert has_path(sample, IN_KERNEL), names(sample)
            time[has_path(sample, PATH)] += sample.values[0]
            stacks[";".join(names(sample))] += sample.values[0]
    for stack, ns in stacks.most_common(2):
        print(f"{ns / 1e6:.1f} ms: {stack}")
    assert time[True] >= WHOLE * time.total() > 0, time


def _check_blocked(ran: Ran, on_cpu: int) -> None:
    """Checks what is waited for the lock off a core: the kernel polls for it for as long as its owner runs, and this is
    a part of the calls' time on a core, ``on_cpu``."""
    waited, took = sum(sample.values[0] for sample in ran.traced.samples(WRITE)), ran.driver["api_write_ns"]
    print(f"{WRITE}: {waited / 1e6:.1f} ms of {took / 1e6:.1f} ms, {on_cpu / 1e6:.1f} ms on a core")
    assert took - on_cpu <= waited <= took, (waited, took, on_cpu)


def _check_waits(ran: Ran) -> float:
    """Checks what each process waited in the query; and where. Returns the largest difference."""
    _check_path(ran)
    _check_blocked(ran, sum(ran.truth("on_cpu", pid) for pid in ran.pids))
    return max(
        _close(
            sum(sample.values[0] for sample in ran.traced.samples(QUERY, pid)),
            ran.truth(QUERY, pid) - ran.truth("on_cpu", pid),
            pid,
        )
        for pid in ran.pids
    )


def _check_locks(ran: Ran) -> float:
    """Checks what all of them waited for each lock, also on a core: the kernel's semaphores are polled while their
    owner runs. Returns the largest difference."""
    worst = 0.0
    for function, counter in ((WRITE, "api_write_ns"), (READ, "api_read_ns"), (GPU, "gpu_ns")):
        took = sum(sample.values[0] for sample in ran.traced.samples(function))
        worst = max(worst, _close(took, ran.driver[counter], function, SAMPLED))
    return worst


def _check_ioctls(ran: Ran) -> int:
    """Each control of each process, by its name, with the RM's own error and the locks."""
    found = Counter[tuple[str, int]]()
    for call in ran.profile.calls:
        assert call.device == DEVICE, call
        assert call.locks == CONTROLS[call.name], call
        refused = {REFUSED[call.name]: call.count} if call.name in REFUSED else {}
        assert call.errors == refused, call
        found[call.name, call.pid] += call.count
    assert found == {(name, pid): CALLS for name in CONTROLS for pid in ran.pids}, found
    assert found.total() == ran.driver["calls"], ran.driver
    assert not any(ran.profile.lost[kind] for kind in IoctlCollector(Ioctl()).losses()), ran.profile.lost
    return found.total()


def _check_calls(ran: Ran) -> None:
    """The query is joined with its ioctls, and these with what they wait for."""
    timed = {(call.name, call.pid): call for call in ran.profile.calls}
    for pid in ran.pids:
        call = timed[QUERY, pid]
        assert call.count == CALLS, call
        # It may wait for a core between the workload's clock and the call.
        outside = ran.traced.thread(pid).runnable - call.runnable
        _close(call.total, ran.truth(QUERY, pid), (QUERY, pid), outside)
    made = Counter[str]()
    for each in ran.profile.call_ioctls:
        if each.name == QUERY:
            made[each.command] += each.count
    assert made == dict.fromkeys(CONTROLS, PROCESSES * CALLS), made
    for sample in ran.traced.samples(WRITE):
        assert any(has_path(sample, (QUERY, f"{name} {DEVICE}", WRITE)) for name in WRITERS), names(sample)
    _check_blocked(ran, sum(each.on_cpu for each in ran.profile.call_ioctls if each.command in WRITERS))


def _check_holder(ran: Ran) -> float:
    """The monitor has the lock for which the ranks wait, and ends their waits. Returns the share of the former."""
    lock = max((each for each in ran.profile.locks if each.kind == "rwsem"), key=lambda each: each.time)
    print(lock)
    monitor, *ranks = ran.pids
    assert {thread.pid for thread in lock.waiters} >= set(ranks), lock.waiters
    held = Counter[str]()
    for holder in lock.holders:
        if (holder.pid, holder.process) == (monitor, "monitor"):
            held[holder.source] += holder.time
    assert held[OWNER] >= SEEN * lock.time, lock.holders
    assert held.total() >= BY_MONITOR * lock.time, lock.holders
    by = Counter[bool]()
    for sample in ran.traced.samples(READ):
        if sample.label("pid") in ranks:
            path = ("os_release_rwlock_write", *reversed(IN_DRIVER), "ioctl", "cudaDeviceGetAttribute", "monitor")
            by[has_path(sample, (*QUERY_PATH, READ, *path, f"monitor-{monitor}"))] += sample.values[0]
    assert by[True] >= BY_MONITOR * by.total(), by
    return held.total() / lock.time


def _check_polling(ran: Ran) -> float:
    """A holder that polls is on a core, in the driver; those who wait are blocked. Returns the difference."""
    running = [s for s in ran.profile.samples if s.label("state") == "running"]
    polling = [s for s in running if has_path(s, ("topk", QUERY, *IN_DRIVER, POLL))]
    took, all_of_it = (sum(s.values[0] for s in each) for each in (polling, running))
    print(f"polling {took / 1e6:.1f} ms of {all_of_it / 1e6:.1f} ms, by the driver {ran.driver['gsp_ns'] / 1e6:.1f} ms")
    assert abs(took - ran.driver["gsp_ns"]) <= SHARES * all_of_it, (took, all_of_it, ran.driver)
    _check_path(ran)
    return abs(took - ran.driver["gsp_ns"]) / ran.driver["gsp_ns"]
