"""Cost of a sample on a CPU in the kernel, ours with complete stacks beside other tools, interleaved in one run."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from peers import PERF_EVENT, TRACER_CPU, bpf_stats, interrupt, run_times

ROUNDS = 5
SECONDS = 4.0
HZ = 99
OURS = "trace-oncpu"
GOAL = 1.0
LOAD = """
import os
def down(n):
    if n:
        return down(n - 1)
    total = 0
    for i in range(2000):
        total += i * i
    os.urandom(4096)
    return total
while True:
    down(12)
"""
"""The system's python3, which has no frame pointers, computes and calls the kernel."""


def commands() -> dict[str, list[str]]:
    """Whole-host samples of both kinds of stacks, by name; those that are installed."""
    found = {OURS: [str(Path(sys.executable).with_name(OURS)), "-a", "-F", str(HZ), "-o", "-"]}
    path = f"{os.environ['PATH']}:/usr/sbin"
    if profile := shutil.which("profile", path=path):
        found["profile"] = [profile, "-F", str(HZ), "3600"]
    else:
        print("libbpf-tools here has no `profile`: not compared")
    if bpftrace := shutil.which("bpftrace", path=path):
        found["bpftrace"] = [bpftrace, "-e", f"profile:hz:{HZ} {{ @[kstack, ustack] = count() }}"]
    else:
        sys.exit("bpftrace is missing: apt-get install bpftrace")
    return found


def main() -> None:
    tools = commands()
    cost: dict[str, list[float]] = {name: [] for name in tools}
    samples = dict.fromkeys(tools, 0)
    loads = [busy(cpu) for cpu in sorted(os.sched_getaffinity(0))]
    try:
        with bpf_stats():
            for _ in range(ROUNDS):
                for name, command in tools.items():
                    ns, count = per_sample(command)
                    cost[name].append(ns)
                    samples[name] += count
    finally:
        for load in loads:
            load.kill()
            load.wait()
    print(f"{ROUNDS} rounds of {SECONDS:g} s at {HZ} Hz on busy cores, whole host, both kinds of stacks; ours complete")
    for name, each in cost.items():
        middle, low, high = statistics.median(each), min(each), max(each)
        print(f"{name:>14} {middle:8,.0f} ns a sample ({low:,.0f} … {high:,.0f}; {samples[name]:,} samples)")
    ours = statistics.median(cost.pop(OURS))
    for name, each in cost.items():
        print(f"ours / {name}: {ours / statistics.median(each):.2f}; goal: at most {GOAL:g}")


def busy(cpu: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["nice", "-n", "10", "taskset", "-c", str(cpu), "/usr/bin/python3", "-c", LOAD])


def per_sample(command: list[str]) -> tuple[float, int]:
    """ns that the programs on perf events took for a sample, and how many there were."""
    with sampling(command) as pid:
        time.sleep(1)  # tables of unwind rules have come
        before = run_times(pid, PERF_EVENT)
        time.sleep(SECONDS)
        after = run_times(pid, PERF_EVENT)
    count = after[1] - before[1]
    return (after[0] - before[0]) / count, count


@contextmanager
def sampling(command: list[str]) -> Iterator[int]:
    process = subprocess.Popen(
        ["taskset", "-c", TRACER_CPU, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 60
        while run_times(process.pid, PERF_EVENT)[1] < HZ:
            if time.monotonic() > deadline:
                sys.exit(f"no samples within 60 s: {' '.join(command)}")
            time.sleep(0.05)
        yield process.pid
    finally:
        interrupt(process)


if __name__ == "__main__":
    main()
