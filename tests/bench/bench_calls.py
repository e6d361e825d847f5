"""Cost of a traced call of a function, in each way that probes get there; beside bpftrace's entry and return."""

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

ROUNDS = 4
CALLS = 200_000
LOOP = str(Path(__file__).resolve().parents[2] / "build" / "workloads" / "call_loop")
TRACE = str(Path(sys.executable).with_name("trace-cuda"))
ONE_LINER = (
    f"uprobe:{LOOP}:call_target {{ @begin[tid] = nsecs; }} uretprobe:{LOOP}:call_target /@begin[tid]/ "
    "{ @ns[pid] = hist(nsecs - @begin[tid]); delete(@begin[tid]); }"
)
_ATTACHED = 5.0
"""Seconds that bpftrace has to compile and attach."""


def cost(*prefix: str) -> float:
    """ns per call: the least of the rounds."""
    found = []
    for _ in range(ROUNDS):
        out = subprocess.run([*prefix, LOOP], capture_output=True, text=True, check=True).stdout
        (line,) = [line for line in out.splitlines() if line.startswith('{"call_ns"')]
        found.append(json.loads(line)["call_ns"])
    return min(found)


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


def many(trace: list[str]) -> str:
    """8 processes that do nothing else: how many calls a second are seen, and how many are lost."""
    loops = f"for i in 1 2 3 4 5 6 7 8; do {LOOP} {CALLS} >/dev/null & done; wait"
    command = [*trace, "--json", "--", "sh", "-c", loops]
    out = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    calls = [call for call in out["calls"] if call["name"] == "call_target"]
    count, lost = sum(call["count"] for call in calls), out["lost"]["calls"]
    made = len(calls) * (CALLS + 1)
    told = "each is counted, or told as lost" if count + lost == made else f"{made - count - lost:,} are neither"
    rate = count / (out["duration_ns"] / 1e9)
    return f"{len(calls)} processes: {count:,} calls, {rate:,.0f} per second, {lost:,} lost; {told}"


def main() -> None:
    alone = cost()
    with tempfile.TemporaryDirectory() as folder:
        trace = [TRACE, "--force", "-o", f"{folder}/x.pb.gz", "--lib", LOOP, "--sym", "^call_target$"]
        ours = {"without user stacks": cost(*trace, "-K", "--"), "user stacks": cost(*trace, "--")}
        together = many(trace)
    with bpftrace():
        peer = cost()
    print(f"without a tracer: {alone:.0f} ns per call")
    for name, found in ours.items():
        print(f"trace-cuda, {name:20} +{found - alone:5.0f} ns per call")
    print(f"bpftrace, no stacks, no split    +{peer - alone:5.0f} ns per call")
    print(f"trace-cuda, user stacks, {together}")
    print(f"goal, less than bpftrace: {'reached' if ours['without user stacks'] < peer else 'missed'}")


if __name__ == "__main__":
    main()
