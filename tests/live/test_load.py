"""The load of the benches, counted: `perf bench sched pipe`, pinned, while the whole host is traced."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable

from stallscope.tracers.core.assemble import Filter, off_cpu_profile
from stallscope.tracers.core.engine import OFF_CPU_PROBES, Engine, EngineOptions
from stallscope.tracers.core.interrupts import Interrupts
from stallscope.tracers.core.records import RecordSink
from stallscope.tracers.core.scope import Scope
from stallscope.tracers.core.session import Session

ROUND_TRIPS = 200_000
LOAD = ["taskset", "-c", "1", "perf", "bench", "sched", "pipe", "-l", str(ROUND_TRIPS)]


def test_no_interval_is_lost(live: None, require: Callable[[bool, str], None]) -> None:
    require(bool(shutil.which("perf")), "perf is missing: apt-get install linux-perf")
    sink = RecordSink()
    engine = Engine(EngineOptions(Scope(everything=True), OFF_CPU_PROBES), sink)
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
    profile = off_cpu_profile(capture, Filter())
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
