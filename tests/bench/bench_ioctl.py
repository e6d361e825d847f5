"""Cost of a traced ioctl, and of any other system call meanwhile; beside bpftrace's histogram of entry and return."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROUNDS = 3
GOALS = {"without user stacks": 400, "another call": 30}
"""ns more than without a tracer."""
LOOP = str(Path(__file__).resolve().parents[2] / "build" / "workloads" / "ioctl_loop")
TRACE = str(Path(sys.executable).with_name("trace-ioctl"))
ONE_LINER = (
    "tracepoint:syscalls:sys_enter_ioctl { @begin[tid] = nsecs; } tracepoint:syscalls:sys_exit_ioctl /@begin[tid]/ "
    "{ @ns[pid] = hist(nsecs - @begin[tid]); delete(@begin[tid]); }"
)
_ATTACHED = 5.0
"""Seconds that bpftrace has to compile and attach."""

Costs = tuple[float, float]
"""ns per ioctl and per other call."""


def costs(*prefix: str) -> Costs:
    """The least of the rounds."""
    found = []
    for _ in range(ROUNDS):
        out = subprocess.run([*prefix, LOOP], capture_output=True, text=True, check=True).stdout
        (line,) = [line for line in out.splitlines() if line.startswith('{"ioctl_ns"')]
        found.append(json.loads(line))
    return min(each["ioctl_ns"] for each in found), min(each["other_ns"] for each in found)


@contextmanager
def bpftrace() -> Iterator[None]:
    """The one-liner, attached; an error if it is not there."""
    program = shutil.which("bpftrace", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        sys.exit("bpftrace is missing: apt-get install bpftrace")
    process = subprocess.Popen([program, "-e", ONE_LINER], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(_ATTACHED)
        if process.poll() is not None:
            sys.exit(f"bpftrace ended with status {process.returncode}")
        yield
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> None:
    alone = costs()
    with tempfile.TemporaryDirectory() as folder:
        trace = [TRACE, "--force", "-o", f"{folder}/x.pb.gz"]
        lines = {
            "without user stacks": costs(*trace, "-K", "--"),
            "user and kernel stacks": costs(*trace, "--"),
        }
    with bpftrace():
        lines["bpftrace, no stacks"] = costs()
    print(f"without a tracer: ioctl {alone[0]:.0f} ns, another system call {alone[1]:.0f} ns")
    for name, (ioctl, other) in lines.items():
        print(f"{name:26} ioctl +{ioctl - alone[0]:4.0f} ns, another system call +{other - alone[1]:3.0f} ns")
    bare = lines["without user stacks"]
    for name, more in (("without user stacks", bare[0] - alone[0]), ("another call", bare[1] - alone[1])):
        print(f"goal {GOALS[name]} ns, {name}: {'reached' if more <= GOALS[name] else 'missed'} with {more:.0f} ns")


if __name__ == "__main__":
    main()
