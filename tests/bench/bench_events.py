"""ns that tracing adds to a context switch, without and with a timeline, interleaved in one run.

CPU time of the load, not wall time: other loads of the machine do not count.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from peers import LOAD_CPU, OURS, TRACER_CPU, wait_for_link

ROUND_TRIPS = 100_000
ROUNDS = 11
GOAL = 1.5
WITH, WITHOUT = "with a timeline", "without"


@contextmanager
def tracing(arguments: list[str], folder: str) -> Iterator[None]:
    """The whole host is traced. To write what was recorded is not measured."""
    # What Ctrl-C means while tables are waited for is: begin.
    command = [str(Path(sys.executable).with_name(OURS)), "-a", "--no-wait", *arguments, "--force"]
    process = subprocess.Popen(
        ["taskset", "-c", TRACER_CPU, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder
    )
    try:
        wait_for_link(process.pid)
        time.sleep(2)
        yield
        process.send_signal(signal.SIGINT)
        if process.wait(120):
            sys.exit(f"{' '.join(command)} failed")
    finally:
        process.kill()
        process.wait()


def pipe_cpu_seconds(round_trips: int) -> float:
    """CPU time of one `perf bench sched pipe` on one core: two switches a round trip."""
    arguments = ["taskset", "-c", LOAD_CPU, "perf", "bench", "sched", "pipe", "-l", str(round_trips)]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        sys.exit("perf bench failed")
    return usage.ru_utime + usage.ru_stime


def main(rounds: int) -> None:
    switches = 2 * ROUND_TRIPS
    bare: list[float] = []
    traced: dict[str, list[float]] = {WITHOUT: [], WITH: []}
    # What is kept is limited, lest its writing takes longer than all the rest.
    arguments = {WITHOUT: ["-o", "x.folded"], WITH: ["-o", "x.pftrace", "--max-events", "200000"]}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for name, given in arguments.items():
                bare.append(pipe_cpu_seconds(ROUND_TRIPS))
                with tracing(given, folder):
                    traced[name].append(pipe_cpu_seconds(ROUND_TRIPS))
    base = statistics.median(bare)
    print(f"{rounds} rounds of {switches:,} switches, one core, the whole host, kernel and user stacks")
    print(f"{'bare':>16} {base / switches * 1e9:8,.0f} ns a switch")
    added = {}
    for name, seconds in traced.items():
        each = [second / switches * 1e9 for second in seconds]
        added[name] = statistics.median(each) - base / switches * 1e9
        middle, low, high = statistics.median(each), min(each), max(each)
        print(f"{name:>16} {middle:8,.0f} ns a switch ({low:,.0f} … {high:,.0f}), +{added[name]:,.0f}")
    print(f"added time, with / without: {added[WITH] / added[WITHOUT]:.2f}; goal: at most {GOAL}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else ROUNDS)
