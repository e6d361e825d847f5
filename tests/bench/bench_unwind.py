"""Cost of a complete user stack in the kernel, unwound and recognised; and what 1,000 processes take."""

from __future__ import annotations

import ctypes
import os
import re
import statistics
import subprocess
import time
from pathlib import Path

from peers import LOAD_CPU, bpf_stats
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.probes import ProbeOptions, Probes
from stallscope.tracers.engines.ebpf.session import Session
from stallscope.tracers.kernel.libbpf import library
from stallscope.tracers.kernel.records import RecordSink
from stallscope.tracers.measures.offcpu import OffCpu

ROUNDS = 5
SECONDS = 1.5
PROCESSES = 1000
GOAL_NS = 2500
PING_PONG = """
import os
def step(n):
    if n:
        return step(n - 1)
    os.write(there, b"x")
    return os.read(back[0], 1)
to, back = os.pipe(), os.pipe()
there = to[1]
if os.fork() == 0:
    while os.read(to[0], 1):
        os.write(back[1], b"x")
while step(0):
    pass
"""
"""The system's python3, which has no frame pointers, waits for its child."""


def main() -> None:
    with bpf_stats():
        unwinding()
    many_processes()


def unwinding() -> None:
    child = subprocess.Popen(["taskset", "-c", LOAD_CPU, "/usr/bin/python3", "-c", PING_PONG], start_new_session=True)
    try:
        time.sleep(0.5)
        ways = {"no user stack": (False, 1, 256), "unwound": (True, 0, 256), "recognised": (True, 1, 256)}
        cost: dict[str, list[float]] = {name: [] for name in ways}
        frames = 0
        for _ in range(ROUNDS):
            for name, (user, memo, check) in ways.items():
                ns, depth = per_switch(child.pid, user, {"user_memo": memo, "user_memo_check": check})
                cost[name].append(ns)
                frames = max(frames, depth)
    finally:
        os.killpg(child.pid, 9)
        child.wait()
    base = statistics.median(cost.pop("no user stack"))
    print(f"user stacks of {frames} frames of python3, BPF time per switch of its thread, {ROUNDS} rounds:")
    for name, each in cost.items():
        low, middle, high = (f(each) - base for f in (min, statistics.median, max))
        goal = f"; goal: at most {GOAL_NS:,}" if name == "unwound" else ""
        print(f"{name:>14} {middle:8,.0f} ns ({low:,.0f} … {high:,.0f}){goal}")


def per_switch(pid: int, user: bool, knobs: dict[str, int]) -> tuple[float, int]:
    """Median of (ns that the probe took) / (switches of the process) in windows of a trace, and the frames of the stack
    that most waits have."""
    sink = RecordSink()
    options = ProbeOptions(Scope(tgids={pid}, children=False), collectors([OffCpu()]), knobs, user, kernel_stacks=False)
    engine = Probes(options, sink)
    windows: list[float] = []
    last: list[tuple[int, int]] = []

    def look(*_: int) -> None:
        now = run_time(engine), switches(pid)
        if last and now[1] - last[-1][1] > 100:
            windows.append((now[0] - last[-1][0]) / (now[1] - last[-1][1]))
        if not last or now[1] - last[-1][1] > 100:
            last.append(now)

    try:
        capture = Session(engine, None, SECONDS).run(sink, look)
    finally:
        engine.close()
    capture.spaces.close()
    top = max(capture.rows, key=lambda row: row.values[1]).origin.ustack
    return statistics.median(windows), len(capture.stacks.get(top, ()))


def run_time(engine: Probes) -> int:
    """ns that the sched_switch program has taken so far: proc(5), fdinfo of a BPF program."""
    program = engine.object.programs["sched_switch"]
    function = library().bpf_program__fd
    function.argtypes = [ctypes.c_void_p]
    text = Path(f"/proc/self/fdinfo/{function(program._pointer)}").read_text()
    return int(text.partition("run_time_ns:")[2].split()[0])


def switches(pid: int) -> int:
    found = re.findall(r"_switches:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return sum(map(int, found))


def many_processes() -> None:
    children = [subprocess.Popen(["sleep", "600"]) for _ in range(PROCESSES)]
    try:
        sink = RecordSink()
        begin = time.monotonic()
        engine = Probes(ProbeOptions(Scope(everything=True), collectors([OffCpu()])), sink)
        started: list[float] = []
        try:
            session = Session(engine, None, 3)
            capture = session.run(sink, lambda *_: started.append(time.monotonic() - begin))
        finally:
            engine.close()
    finally:
        for child in children:
            child.kill()
        for child in children:
            child.wait()
    tables = capture.tables
    assert tables is not None
    tgids = {record.thread.key.tgid for record in capture.threads}
    memory = f"{tables.bytes / 1e6:.1f} MB of tables for {tables.files} files"
    print(f"{len(tgids):,} processes of the host, {PROCESSES:,} of them share their libraries: {memory}; ", end="")
    print(f"first look at the rings after {started[0]:.2f} s")


if __name__ == "__main__":
    main()
