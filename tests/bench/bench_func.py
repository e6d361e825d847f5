"""Cost of a hit of trace-func, timed and counted; beside bcc's funclatency and stackcount, and bpftrace.

The tools take turns, A B A B: what else the machine does then meets all of them. Medians of the rounds.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROUNDS = int(os.environ.get("ROUNDS", "5"))
LOOP = str(Path(__file__).resolve().parents[2] / "build" / "workloads" / "call_loop")
TRACE = str(Path(sys.executable).with_name("trace-func"))
TARGET = f"{LOOP}:call_target"
HEADERS = Path(__file__).resolve().parents[2] / "tracers" / "bcc" / "headers"
"""Headers for bcc, where there are none of the running kernel."""
PATH = f"{os.environ['PATH']}:/usr/sbin"
ATTACHED = 8.0
"""Seconds that the other tools have to compile and attach."""
TIMED = (
    f"uprobe:{TARGET} {{ @begin[tid] = nsecs; }} uretprobe:{TARGET} /@begin[tid]/ "
    "{ @ns[pid] = hist(nsecs - @begin[tid]); delete(@begin[tid]); }"
)
COUNTED = f"uprobe:{TARGET} {{ @[ustack, pid] = count(); }}"


def measured() -> float:
    """ns per call."""
    out = subprocess.run([LOOP], capture_output=True, text=True, check=True).stdout
    (line,) = [line for line in out.splitlines() if line.startswith('{"call_ns"')]
    return float(json.loads(line)["call_ns"])


def ours(*options: str) -> float:
    """Time of a call, started by trace-func."""
    with tempfile.TemporaryDirectory() as folder:
        command = [TRACE, TARGET, *options, "-o", f"{folder}/x.pb.gz", "--", LOOP]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (line,) = [line for line in out.splitlines() if line.startswith('{"call_ns"')]
    return float(json.loads(line)["call_ns"])


class NotRunning(Exception):
    """A tool has ended by itself: it does not work here."""


@contextmanager
def running(*command: str) -> Iterator[None]:
    """A tool that traces every process until it is interrupted."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(ATTACHED)
        if process.poll() is not None:
            raise NotRunning
        yield
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def peer(*command: str) -> float:
    """ns per call while it runs."""
    with running(*command):
        return measured()


def found(name: str, package: str) -> str:
    path = shutil.which(name, path=PATH)
    if path is None:
        sys.exit(f"{name} is missing: apt-get install {package}")
    return path


def main() -> None:
    if not Path(f"/lib/modules/{os.uname().release}/build").exists() and HEADERS.exists():
        os.environ.setdefault("BCC_KERNEL_SOURCE", str(HEADERS))
    bpftrace = found("bpftrace", "bpftrace")
    funclatency, stackcount = (found(f"{name}-bpfcc", "bpfcc-tools") for name in ("funclatency", "stackcount"))
    tools = {
        "without a tracer": measured,
        "trace-func, timed, no stacks": lambda: ours("-K"),
        "bcc funclatency, no stacks": lambda: peer(funclatency, TARGET),
        "bpftrace, timed, no stacks": lambda: peer(bpftrace, "-e", TIMED),
        "trace-func, timed, user stacks": ours,
        "trace-func --count, no stacks": lambda: ours("--count", "-K"),
        "trace-func --count, user stacks": lambda: ours("--count"),
        "bcc stackcount, user stacks": lambda: peer(stackcount, "-U", TARGET),
        "bpftrace, counted, user stacks": lambda: peer(bpftrace, "-e", COUNTED),
    }
    figures: dict[str, list[float]] = {name: [] for name in tools}
    for _ in range(ROUNDS):
        for name, measure in tools.items():
            try:
                figures[name].append(measure())
            except NotRunning:
                continue
    alone = statistics.median(figures.pop("without a tracer"))
    print(f"without a tracer: {alone:.0f} ns per call; medians of {ROUNDS} rounds, A B A B; least and most")
    for name, each in figures.items():
        if not each:
            print(f"{name:32}  does not run here (bcc's stackcount needs the kernel's headers)")
            continue
        extra = [value - alone for value in (statistics.median(each), min(each), max(each))]
        print(f"{name:32} +{extra[0]:6.0f} ns per call ({extra[1]:.0f} … {extra[2]:.0f})")


if __name__ == "__main__":
    main()
