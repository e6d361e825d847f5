"""``make demo``: eight processes that serialise in a driver call, traced for some seconds; then the same with the call
timed, and with its ioctl.

Ends every process that it started.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from runner import Workload, WorkloadFailed

_ROOT = Path(__file__).resolve().parents[2]
_MARGIN_MS = 30_000
"""Time in ms that the processes would run longer than the trace: they are killed after it."""
_ALONE = 1.0
"""Seconds for which one process is alone."""


def _start(stack: contextlib.ExitStack, processes: int, seconds: float) -> list[Workload]:
    duration = int(seconds * 1000) + _MARGIN_MS
    demos = [stack.enter_context(Workload("demo", duration)) for _ in range(processes)]
    for demo in demos:
        demo.release()
    return demos


def _trace(demos: list[Workload], seconds: float, output: Path) -> int:
    """Exit status of trace-offcpu."""
    command = Path(sys.executable).with_name("trace-offcpu")
    pids = ",".join(str(demo.pid) for demo in demos)
    arguments = ["-p", pids, "-d", f"{seconds:g}", "--merge", "-o", str(output.relative_to(_ROOT)), "--force"]
    print(f"$ trace-offcpu {' '.join(arguments)}", flush=True)
    return subprocess.run([str(command), *arguments], cwd=_ROOT, check=False).returncode


def _time_calls(processes: int, seconds: float) -> int:
    """Exit status of trace-cuda, which starts the processes as the ranks of a job. One of them is alone at first: so it
    is known how long a call takes then."""
    ranks = " ".join(map(str, range(processes)))
    demo = f"build/workloads/demo {int(seconds * 1000)} >/dev/null 2>&1"
    job = f"for rank in {ranks}; do RANK=$rank {demo} & [ $rank = 0 ] && sleep {_ALONE:g}; done; wait"
    return _trace_cuda("--lib", "libdemo_cuda.so", "--sym", "^cuda", "--", "sh", "-c", job)


def _time_standin(processes: int) -> int:
    """Times the stand-ins for CUDA's libraries, whose device a process serves through FUSE."""
    print("Instead, the stand-ins for CUDA's libraries, with a device in user space:")
    return _trace_cuda("--", "sh", "-c", f"build/workloads/cuda_calls plain {processes} 200 >/dev/null")


def _trace_cuda(*arguments: str) -> int:
    outputs = [part for suffix in ("svg", "pftrace") for part in ("-o", f"build/demo/calls.{suffix}")]
    words = [*outputs, "--force", *arguments]
    print(f"\n$ trace-cuda {shlex.join(words)}", flush=True)
    command = Path(sys.executable).with_name("trace-cuda")
    status = subprocess.run([str(command), *words], cwd=_ROOT, check=False).returncode
    if status == 0:
        calls = _ROOT / "build" / "demo" / "calls"
        print(f"\nThe time in the call, with its ioctl: {calls}.svg")
        print(f"The calls of each thread, one by one: {calls}.pftrace (open it in ui.perfetto.dev)")
    return status


def main() -> int:
    """The status of the first command that failed."""
    parser = argparse.ArgumentParser(description="Trace the demo workload.")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    output = _ROOT / "build" / "demo" / "demo.svg"
    output.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        try:
            demos = _start(stack, options.processes, options.seconds)
        except WorkloadFailed as failure:
            print(failure, file=sys.stderr)
            return _time_standin(options.processes)
        status = _trace(demos, options.seconds, output)
    if status == 0:
        print(f"\nThe flame graph: {output}\nOpen it in a browser: the widest tower is what the workers wait for.")
    return status or _time_calls(options.processes, options.seconds)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # through the stack that ends the processes
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
