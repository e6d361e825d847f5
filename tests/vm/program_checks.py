"""The checks of many processes, in a guest: the demo, and those that fork, become other programs, and are killed."""

from __future__ import annotations

import itertools
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from guest_traces import ROOT, TRACE, run, traced, whole_share
from peers import wait_for_link
from runner import FOLDER, Workload
from stallscope.converters.model import Profile
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf.assemble import profile_of
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.probes import ProbeOptions, Probes
from stallscope.tracers.engines.ebpf.session import Session
from stallscope.tracers.kernel.records import RecordSink
from stallscope.tracers.measures.offcpu import OffCpu


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
        engine = Probes(ProbeOptions(scope, collectors([OffCpu()])), sink)
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
