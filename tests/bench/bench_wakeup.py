"""Cost of tracing at a switch: trace-wakeup, with chains, beside libbpf-tools' wakeuptime and offcputime together,
which tell who waits and who wakes, but not of each other. All trace one process, and the load is threads of it: what
else runs on the machine has little part in the figures.

Two of them, in turns: CPU time of the load, and the time in the BPF programs themselves, as the kernel counts it
(kernel.bpf_stats_enabled), per switch of the load. Pinned to one core, every switch of `perf bench sched pipe` has a
wake-up; `perf bench sched messaging` is many threads on all cores, whose CPU time can differ by more than tracing adds.
"""

from __future__ import annotations

import contextlib
import os
import pty
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from peers import LOAD_CPU, TRACER_CPU, bpf_stats, run_times, wait_for_link

OURS = "trace-wakeup"
PEERS = ("wakeuptime", "offcputime")
TOGETHER = " + ".join(PEERS)
ROUNDS = 5
ROUND_TRIPS, LOOPS = 50_000, 300
GOAL = 0.6
LOADS = {
    "pipe": ["taskset", "-c", LOAD_CPU, "perf", "bench", "sched", "pipe", "-T", "-l", str(ROUND_TRIPS)],
    "messaging": ["perf", "bench", "sched", "messaging", "-t", "-g", "5", "-l", str(LOOPS)],
}


class Cost(NamedTuple):
    """Cost of one run of a load."""

    cpu: float
    """Seconds of CPU time of the load."""
    bpf: float = 0.0
    """ns in BPF programs per switch of the load."""


def command(name: str, options: Sequence[str] = ("--no-locks",)) -> list[str]:
    """A whole-host trace that runs until it is interrupted. ``options``: of ours."""
    if name == OURS:
        return [str(Path(sys.executable).with_name(OURS)), "-a", "--no-wait", "--force", "-o", "x.folded", *options]
    path = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if path is None:
        sys.exit(f"{name} is missing: apt-get install libbpf-tools")
    return [path, "3600"]


@contextlib.contextmanager
def tracing(name: str, folder: str, options: Sequence[str] = ("--no-locks",)) -> Iterator[int]:
    """The tracer's process id. Ours ends as by Ctrl-C and has to succeed; the others print for long, and are
    killed."""
    process = subprocess.Popen(
        ["taskset", "-c", TRACER_CPU, *command(name, options)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
    )
    try:
        wait_for_link(process.pid)
        time.sleep(2)
        yield process.pid
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


@contextlib.contextmanager
def tracing_one(name: str, pid: int, folder: str) -> Iterator[int]:
    """Traces one process; yields the tracer's process id, when it traces. Ours says so on a terminal."""
    arguments = ["-p", str(pid)] if name == OURS else ["-p", str(pid), "3600"]
    if name == OURS:
        arguments += ["--no-locks", "--force", "-o", "x.folded"]
    path = Path(sys.executable).with_name(OURS) if name == OURS else command(name)[0]
    primary, terminal = pty.openpty()
    line = ["taskset", "-c", TRACER_CPU, str(path), *arguments]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=terminal, cwd=folder)
    os.close(terminal)
    begun = threading.Event()
    threading.Thread(target=read_all, args=(primary, begun), daemon=True).start()
    try:
        wait_for_link(process.pid)
        if name == OURS and not begun.wait(60):
            sys.exit(f"{name} did not begin")
        time.sleep(1)
        yield process.pid
        if name == OURS and process.wait(300):  # it ends with the load
            sys.exit(f"{name} failed")
    finally:
        process.kill()
        process.wait()


def read_all(terminal: int, begun: threading.Event) -> None:
    """Reads what a tracer prints, for it not to wait for that."""
    with contextlib.suppress(OSError), open(terminal, "rb", buffering=0) as file:
        while text := file.read(1 << 12):
            if b"tracing " in text:
                begun.set()


def measured(load: str, names: Sequence[str], folder: str) -> Cost:
    """A run of the load while these trace it: it exists, waits for a line, and becomes the load."""
    waits = ["sh", "-c", 'read go && exec "$@"', "sh", *LOADS[load]]
    process = subprocess.Popen(waits, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert process.stdin
    with contextlib.ExitStack() as stack:
        pids = [stack.enter_context(tracing_one(name, process.pid, folder)) for name in names]
        before = spent = in_programs(pids)
        process.stdin.write(b"go\n")
        process.stdin.close()
        ended = 0
        while not ended:  # ours gives its programs back soon after the load has ended
            time.sleep(0.02)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            spent = max(spent, in_programs(pids))
        process.returncode = os.waitstatus_to_exitcode(status)
        if status:
            sys.exit(f"{load} failed")
        return Cost(usage.ru_utime + usage.ru_stime, (spent - before) / (usage.ru_nvcsw + usage.ru_nivcsw))


def in_programs(pids: Sequence[int]) -> int:
    """ns in the BPF programs of these tracers so far; 0 if one has ended."""
    try:
        return sum(run_times(pid)[0] for pid in pids)
    except OSError:
        return 0


def compare(load: str, rounds: int, folder: str) -> None:
    """Compares ours and theirs in turns; before each, the load alone."""
    alone: list[float] = []
    traced: dict[str, list[Cost]] = {OURS: [], TOGETHER: []}
    for _ in range(rounds):
        for name, costs in traced.items():
            alone.append(measured(load, (), folder).cpu)
            costs.append(measured(load, PEERS if name == TOGETHER else (name,), folder))
    base = statistics.median(alone)
    print(f"{load}: {rounds} rounds, one process, kernel and user stacks (wakeuptime: kernel stacks of wakers only)")
    print(f"{'':>24}  CPU time of the load (median; least … most; added)    in BPF programs, per switch")
    print(f"{'bare':>24} {base:8.3f} s ({min(alone):.3f} … {max(alone):.3f})")
    added, spent = {}, {}
    for name, costs in traced.items():
        cpu, bpf = [cost.cpu for cost in costs], [cost.bpf for cost in costs]
        added[name], spent[name] = statistics.median(cpu) - base, statistics.median(bpf)
        print(
            f"{name:>24} {statistics.median(cpu):8.3f} s ({min(cpu):.3f} … {max(cpu):.3f}; {added[name]:+.3f})", end=""
        )
        print(f"    {spent[name]:6.0f} ns ({min(bpf):.0f} … {max(bpf):.0f})")
    ratios = [ours.bpf / theirs.bpf for ours, theirs in zip(traced[OURS], traced[TOGETHER], strict=True)]
    print(f"ours / theirs: added CPU time {added[OURS] / added[TOGETHER]:.2f}; in BPF programs ", end="")
    print(f"{spent[OURS] / spent[TOGETHER]:.2f} (pairs {min(ratios):.2f} … {max(ratios):.2f}); goal: at most {GOAL}")


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder, bpf_stats():
        for load in LOADS:
            compare(load, rounds, folder)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else ROUNDS)
