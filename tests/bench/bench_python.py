"""Cost of Python functions in stacks at a context switch: two processes of Python pass a byte back and forth, below
so many functions, without a trace, with `--no-python`, and with them; one after the other, in rounds."""

from __future__ import annotations

import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from peers import LOAD_CPU, OURS, TRACER_CPU, bpf_stats, run_times, wait_for_link

ROUNDS = 4
SECONDS = 2.0
DEPTHS = (5, 20)
WORK = """
import os, sys
read, write, again, back = *os.pipe(), *os.pipe()
depth = int(sys.argv[1]) - 2
code = "def f0(read, write):\\n  while True: os.write(write, os.read(read, 1))\\n"
for i in range(depth):
    code += f"def f{i + 1}(read, write): f{i}(read, write)\\n"
exec(compile(code, "functions.py", "exec"))
innermost = globals()[f"f{depth}"]
if os.fork():
    os.write(write, b"x")
    innermost(again, write)
innermost(read, back)
"""


def switches(pid: int) -> int:
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["voluntary_ctxt_switches"])


def rate(pids: list[int]) -> float:
    """Switches per second of these processes."""
    before, begin = sum(map(switches, pids)), time.monotonic()
    time.sleep(SECONDS)
    return (sum(map(switches, pids)) - before) / (time.monotonic() - begin)


def traced(pids: list[int], *options: str) -> tuple[float, float]:
    """Switches per second while a trace runs, and ns of BPF programs per switch."""
    ours = str(Path(sys.executable).with_name(OURS))
    chosen = [argument for pid in pids for argument in ("-p", str(pid))]
    command = ["taskset", "-c", TRACER_CPU, ours, *chosen, *options, "-o", "-"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_link(process.pid)
        time.sleep(2)
        before = run_times(process.pid)[0], sum(map(switches, pids))
        found = rate(pids)
        ns, count = run_times(process.pid)[0] - before[0], sum(map(switches, pids)) - before[1]
        return found, ns / max(count, 1)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def measure(depth: int) -> None:
    load = subprocess.Popen(["taskset", "-c", LOAD_CPU, sys.executable, "-c", WORK, str(depth)])
    try:
        time.sleep(0.5)
        (child,) = Path(f"/proc/{load.pid}/task/{load.pid}/children").read_text().split()
        pids = [load.pid, int(child)]
        found: dict[str, list[tuple[float, float]]] = {"bare": [], "--no-python": [], "--python": []}
        for _ in range(ROUNDS):
            for option, each in found.items():
                each.append((rate(pids), 0.0) if option == "bare" else traced(pids, option))
    finally:
        for pid in pids:
            subprocess.run(["kill", "-9", str(pid)], check=False)
        load.wait()
    base = statistics.median(1e9 / rate for rate, _ in found["bare"])
    print(f"{depth} Python functions, {ROUNDS} rounds of {SECONDS:g} s, one core")
    for option, each in found.items():
        whole = [1e9 / rate for rate, _ in each]
        bpf = [ns for _, ns in each]
        print(
            f"{option:>14} {statistics.median(whole):8,.0f} ns a switch ({min(whole):,.0f} … {max(whole):,.0f}), "
            f"{statistics.median(whole) - base:+,.0f}; {statistics.median(bpf):,.0f} ns of it BPF"
        )


def main() -> None:
    with bpf_stats():
        for depth in DEPTHS:
            measure(depth)


if __name__ == "__main__":
    main()
