"""Cost of telling locks in trace-wakeup: CPU time of a load, bare, with --no-locks, and with locks, in turns.

`futex` is two threads on one core that wait for each other by a futex: every switch is a wait for one. `syscalls` makes
system calls that are no futex. `contended` is the mutex of several processes, of which one has it on and on.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from bench_wakeup import OURS, cpu_seconds, tracing
from peers import LOAD_CPU

ROOT = Path(__file__).resolve().parents[2]
WORKLOADS = ROOT / "build" / "workloads"
ROUNDS = 5
ROUND_TRIPS = 40_000
LOADS = {
    "futex": ["taskset", "-c", LOAD_CPU, str(WORKLOADS / "futex_pingpong"), str(ROUND_TRIPS)],
    "contended": ["taskset", "-c", LOAD_CPU, str(WORKLOADS / "mutexes"), "shared", "8", "100", "1000"],
    "syscalls": ["taskset", "-c", LOAD_CPU, "perf", "bench", "syscall", "basic", "-l", "3000000"],
}
WAYS: dict[str, list[str] | None] = {"bare": None, "--no-locks": ["--no-locks"], "with locks": []}


def measure(load: str, folder: str, options: list[str] | None) -> float:
    """CPU seconds of the load under one of `WAYS`."""
    if options is None:
        return cpu_seconds(LOADS[load])
    with tracing(OURS, folder, options):
        return cpu_seconds(LOADS[load])


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for load in LOADS:
            seconds: dict[str, list[float]] = {way: [] for way in WAYS}
            for _ in range(rounds):
                for way, options in WAYS.items():
                    seconds[way].append(measure(load, folder, options))
            print(f"{load}: {rounds} rounds, the whole host")
            for way, found in seconds.items():
                middle = statistics.median(found)
                print(f"{way:>12} {middle:8.3f} s ({min(found):.3f} … {max(found):.3f})")
            bare, without, locks = (statistics.median(found) for found in seconds.values())
            added = (locks - without) / (without - bare) if without > bare else float("nan")
            print(f"locks add {locks - without:+.3f} s: {added:.2f} of what trace-wakeup adds without them")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else ROUNDS)
