"""The load of the benches, counted: `perf bench sched pipe`, pinned, while the whole host is traced."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable

from stallscope.tracers.base.interrupts import Interrupts
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf.assemble import profile_of
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.probes import ProbeOptions, Probes
from stallscope.tracers.engines.ebpf.session import Session
from stallscope.tracers.kernel.records import RecordSink
from stallscope.tracers.measures.offcpu import OffCpu

ROUND_TRIPS = 200_000
LOAD = ["taskset", "-c", "1", "perf", "bench", "sched", "pipe", "-l", str(ROUND_TRIPS)]


def test_no_interval_is_lost(live: None, require: Callable[[bool, str], None]) -> None:
    require(bool(shutil.which("perf")), "perf is missing: apt-get install linux-perf")
    sink = RecordSink()
    engine = Probes(ProbeOptions(Scope(everything=True), collectors([OffCpu()])), sink)
    load: subprocess.Popen[bytes] | None = None
    with Interrupts() as interrupts:

        def poll(*_: int) -> None:
            nonlocal load
            if load is None:
                load = subprocess.Popen(LOAD, stdout=subprocess.DEVNULL)
            elif load.poll() is not None:
                interrupts.requested = True

        try:
            capture = Session(engine, None, 60).run(sink, poll, interrupts)
        finally:
            engine.close()
            if load is not None:
                load.kill()
                load.wait()
    profile = profile_of(capture, "Off-CPU time")
    ends = {times.pid: times.switches for times in profile.threads if times.switches > ROUND_TRIPS // 2}
    waits = dict.fromkeys(ends, 0)
    for sample in profile.samples:
        pid = sample.label("pid")
        if pid in waits and sample.label("state") != "runnable-woken":  # that is the second part of a wait
            waits[pid] += sample.values[1]
    assert len(ends) == 2
    assert sum(ends.values()) >= 2 * ROUND_TRIPS
    assert waits == ends
    assert profile.lost["intervals"] == 0
    assert profile.lost["stacks"] == 0
