"""ns that tracing adds to a switch: trace-wakeup, with chains, beside libbpf-tools' wakeuptime and offcputime, which
together tell who waits and who wakes, but not of each other.

CPU time of the load, not wall time: other loads of the machine do not count. Pinned to one core, every switch of
`perf bench sched pipe` has a wake-up; `perf bench sched messaging` is many processes on all cores.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from peers import LOAD_CPU, TRACER_CPU, wait_for_link

OURS = "trace-wakeup"
PEERS = ("wakeuptime", "offcputime")
TOGETHER = " + ".join(PEERS)
ROUNDS = 7
ROUND_TRIPS, LOOPS = 50_000, 300
GOAL = 0.6
LOADS = {
    "pipe": ["taskset", "-c", LOAD_CPU, "perf", "bench", "sched", "pipe", "-l", str(ROUND_TRIPS)],
    "messaging": ["perf", "bench", "sched", "messaging", "-g", "5", "-l", str(LOOPS)],
}


def command(name: str, options: Sequence[str] = ("--no-locks",)) -> list[str]:
    """A whole-host trace that runs until it is interrupted. ``options``: of ours."""
    if name == OURS:
        return [str(Path(sys.executable).with_name(OURS)), "-a", "--no-wait", "--force", "-o", "x.folded", *options]
    path = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if path is None:
        sys.exit(f"{name} is missing: apt-get install libbpf-tools")
    return [path, "3600"]


@contextlib.contextmanager
def tracing(name: str, folder: str, options: Sequence[str] = ("--no-locks",)) -> Iterator[None]:
    """Ours ends as by Ctrl-C and has to succeed; the others print for long, and are killed."""
    process = subprocess.Popen(
        ["taskset", "-c", TRACER_CPU, *command(name, options)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
    )
    try:
        wait_for_link(process.pid)
        time.sleep(2)
        yield
        if name == OURS:
            process.send_signal(signal.SIGINT)
            if process.wait(300):
                sys.exit(f"{name} failed")
    finally:
        process.kill()
        process.wait()


def cpu_seconds(load: Sequence[str]) -> float:
    """CPU time of a command that has to succeed."""
    process = subprocess.Popen(load, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        sys.exit(f"{load[0]} failed")
    return usage.ru_utime + usage.ru_stime


def compare(load: str, rounds: int, folder: str) -> None:
    bare: list[float] = []
    traced: dict[str, list[float]] = {name: [] for name in (OURS, *PEERS, TOGETHER)}
    for _ in range(rounds):
        for name, seconds in traced.items():
            bare.append(cpu_seconds(LOADS[load]))
            with contextlib.ExitStack() as stack:
                for each in PEERS if name == TOGETHER else (name,):
                    stack.enter_context(tracing(each, folder))
                seconds.append(cpu_seconds(LOADS[load]))
    base = statistics.median(bare)
    print(f"{load}: {rounds} rounds, the whole host, kernel and user stacks (wakeuptime: kernel stacks of wakers only)")
    print(f"{'bare':>24} {base:8.3f} s")
    added = {}
    for name, seconds in traced.items():
        middle, low, high = statistics.median(seconds), min(seconds), max(seconds)
        added[name] = middle - base
        print(f"{name:>24} {middle:8.3f} s ({low:.3f} … {high:.3f}), +{added[name]:.3f}")
    total = sum(added[name] for name in PEERS)
    share, together = added[OURS] / total, added[OURS] / added[TOGETHER]
    print(f"added time, ours / sum of theirs: {share:.2f}; / both at once: {together:.2f};", end="")
    print(f" goal: at most {GOAL}")


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for load in LOADS:
            compare(load, rounds, folder)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else ROUNDS)
