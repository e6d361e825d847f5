"""Tracing for real, in this process: `run_traced` runs the engine over a workload and gives back the profile."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any, TypeGuard

from runner import Workload
from stallscope.converters.model import Profile, Sample, ThreadTimes
from stallscope.converters.model.calls import CallTimes
from stallscope.tracers.engines.ebpf.assemble import profile_of
from stallscope.tracers.engines.ebpf.measures.protocol import Collector
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.probes import ProbeOptions, Probes
from stallscope.tracers.engines.ebpf.session import Session
from stallscope.tracers.kernel.records import RecordSink
from stallscope.tracers.measures.protocol import Measure

RUNNABLE = ("runnable-woken", "runnable-preempted")
SURVIVES = "import signal; signal.signal(signal.SIGTRAP, lambda *_: None)"
"""Code for a program with breakpoints, on a virtual machine: see docs/steps.md."""


@dataclass
class Traced:
    """A profile and what the workload says of itself."""

    profile: Profile
    truth: dict[str, Any]
    counters: dict[str, int] = field(default_factory=dict)
    """The programs' own, by name."""
    kernel: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Times in ns on a CPU and waiting for one, by tid, of the threads that lived throughout: /proc/TID/schedstat."""
    stolen: int = 0
    """ns that all cores together spent in interrupts and without a core of the hypervisor's, by /proc/stat."""

    @property
    def missed(self) -> int:
        """Number of switches that were not seen."""
        return sum(self.counters[name] for name in ("missed_ins", "missed_outs", "missed_waits"))

    @property
    def unseen(self) -> int:
        """Waits without a stack, because the kernel did not report the switch (`missed_…` in bpf/sched.bpf.c)."""
        return sum(s.values[1] for s in self.profile.samples if s.label("state") == "other" and len(s.stack) == 1)

    def samples(self, function: str, tid: int | None = None) -> list[Sample]:
        """Samples with ``function`` on the stack."""
        return [
            sample
            for sample in self.profile.samples
            if any(frame.name == function for frame in sample.stack) and tid in (None, sample.label("tid"))
        ]

    def waited(self, function: str, tid: int | None = None) -> int:
        """ns blocked, or woken and waiting for a core; without preemptions, which hit any instruction."""
        return sum(s.values[0] for s in self.samples(function, tid) if s.label("state") != "runnable-preempted")

    def preempted(self, tid: int | None = None) -> int:
        """ns that the thread, or all of them, waited for a core after a preemption."""
        samples = self.profile.samples
        return sum(
            s.values[0] for s in samples if s.label("state") == "runnable-preempted" and tid in (None, s.label("tid"))
        )

    def blocks(self, function: str, tid: int | None = None) -> int:
        """Number of times that a thread was switched out in ``function`` because it waited."""
        samples = self.samples(function, tid)
        return sum(s.values[1] for s in samples if s.label("state") not in RUNNABLE and s.label("open") != "yes")

    def thread(self, tid: int) -> ThreadTimes:
        (found,) = [times for times in self.profile.threads if times.tid == tid]
        return found


Trace = Callable[..., Traced]

_PAUSE = 20_000_000
"""ns that a page fault, the dynamic linker, or the hypervisor may take between the workload's clock and a probe."""


def only_in_truth(traced: Traced, truth: dict[str, Any], call: CallTimes) -> int:
    """ns that the workload's clock counts for these calls, and the probes, which are between its two readings, do not.

    The thread waited for a core there, or one of the calls was delayed: then the workload's longest call is longer than
    the one that was measured.
    """
    inside = (
        s
        for s in traced.profile.samples
        if s.label("tid") == truth["tid"] and str(s.label("state")).startswith("runnable")
    )
    queued = traced.thread(truth["tid"]).runnable - sum(sample.values[0] for sample in inside)
    return queued + min(max(truth["longest"] - call.max, 0), _PAUSE)


def pids(profile: Profile) -> set[object]:
    """Pids of the processes that a profile knows of."""
    return {sample.label("pid") for sample in profile.samples} | {times.pid for times in profile.threads}


def tids(profile: Profile) -> set[object]:
    """Ids of the threads that a profile knows of."""
    return {sample.label("tid") for sample in profile.samples} | {times.tid for times in profile.threads}


def is_collector(each: Measure | Collector) -> TypeGuard[Collector]:
    """A measure is a dataclass, its collector is not."""
    return not is_dataclass(each)


def collecting(measures: Iterable[Measure | Collector]) -> tuple[Collector, ...]:
    """The collectors of measures, and those that a test has made itself."""
    made = tuple(each if is_collector(each) else collectors([each])[0] for each in measures)
    for each in made:
        each.beside(made)
    return made


def run_traced(workload: Workload, options: ProbeOptions, duration: float | None) -> Traced:
    """Releases the workload when every thread has been taken in; Ctrl-C when it has told its truth and lingers."""
    sink = RecordSink(collector.on_record for collector in options.collectors)
    engine = Probes(options, sink)
    truth: dict[str, Any] = {}
    before: dict[int, tuple[int, int]] = {}
    after: dict[int, tuple[int, int]] = {}

    def work() -> None:
        before.update(_schedstats(workload.tids))
        workload.release()
        truth.update(workload.truth())
        if workload.pid in workload.pids and duration is None:
            after.update(_schedstats(workload.tids))
            os.kill(os.getpid(), signal.SIGINT)  # it lingers: nothing else ends the trace
        else:
            workload.finish()

    stolen = _stolen()
    worker = threading.Thread(target=work)
    try:
        session = Session(engine, None, duration)
        capture = session.run(sink, lambda *_: worker.start() if not worker.ident else None)
        worker.join()
    finally:
        engine.close()
    kernel = {tid: (after[tid][0] - before[tid][0], after[tid][1] - before[tid][1]) for tid in after}
    traced = Traced(profile_of(capture, "Off-CPU time"), truth, capture.counters, kernel, _stolen() - stolen)
    capture.spaces.close()
    return traced


def _schedstats(tids: list[int]) -> dict[int, tuple[int, int]]:
    found = {}
    for tid in tids:
        try:
            on_cpu, runnable, _ = Path(f"/proc/{tid}/schedstat").read_text().split()
        except OSError:
            continue  # it ended
        found[tid] = (int(on_cpu), int(runnable))
    return found


def _stolen() -> int:
    """irq, softirq and steal of the first line of /proc/stat: proc(5)."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()
    return sum(map(int, fields[6:9])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
