"""``make demo``: eight processes that serialise in a driver call, traced for some seconds.

Ends every process that it started.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import subprocess
import sys
from pathlib import Path

from runner import Workload, WorkloadFailed

_ROOT = Path(__file__).resolve().parents[2]
_MARGIN_MS = 30_000
"""How much longer than the trace the processes would run: they are killed after it."""


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


def main() -> int:
    """1 when a demo process cannot run, else trace-offcpu's status."""
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
            return 1
        status = _trace(demos, options.seconds, output)
    if status == 0:
        print(f"\nThe flame graph: {output}\nOpen it in a browser: the widest tower is what the workers wait for.")
    return status


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # through the stack that ends the processes
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
