"""Cost of tracing for a program of Python, beside py-spy and austin at 99 samples a second: one that computes, and two
processes on one core that pass a byte back and forth. Each tool's turn stands between two turns without
any, in rounds; the medians of the ratios are printed: per second, and per second on a core. The second one does not see
how long a tool stops the program, and the first one is worth little on a machine that does other work.

    .venv/bin/python tests/bench/bench_python_peers.py [AUSTIN]

AUSTIN: the program of the package austin-dist (3.7 runs with glibc 2.36), which is installed into a temporary folder
without it."""

from __future__ import annotations

import mmap
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from peers import LOAD_CPU, TRACER_CPU, wait_for_link

ROUNDS = 3
SECONDS = 2.0
SETTLES = 3.0
HERTZ = 99
COMPUTES = """
import mmap, sys
file = open(sys.argv[1], "r+b")
memory = mmap.mmap(file.fileno(), 8)
def inner(n):
    total = 0
    for i in range(n):
        total += i * i
    return total
def middle(n): return inner(n)
def outer(n): return middle(n)
count = 0
while True:
    outer(200)
    count += 1
    memory[:8] = count.to_bytes(8, "little")
"""
PASSES = """
import mmap, os, sys
file = open(sys.argv[1], "r+b")
memory = mmap.mmap(file.fileno(), 8)
read, write, again, back = *os.pipe(), *os.pipe()
def inner(read, write):
    byte = os.read(read, 1)
    for _ in range(1000): pass
    os.write(write, byte)
def middle(read, write): inner(read, write)
def outer(read, write): middle(read, write)
if os.fork():
    os.write(write, b"x")
    while True: outer(again, write)
count = 0
while True:
    outer(read, back)
    count += 2
    memory[:8] = count.to_bytes(8, "little")
"""


class Rates(NamedTuple):
    """Rates of a program per second of time, and of its own time on a core."""

    wall: float
    cpu: float


class Load(NamedTuple):
    """A running program: what it has done so far is in the file."""

    pids: list[int]
    memory: mmap.mmap

    def count(self) -> int:
        return int.from_bytes(self.memory[:8], "little")

    def ran(self) -> float:
        """Seconds that it had a core."""
        return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in self.pids) / 1e9

    def rates(self) -> Rates:
        before, begin, ran = self.count(), time.monotonic(), self.ran()
        time.sleep(SECONDS)
        count = self.count() - before
        return Rates(count / (time.monotonic() - begin), count / (self.ran() - ran))


@contextmanager
def running(script: str, folder: Path) -> Iterator[Load]:
    path = folder / "count"
    path.write_bytes(bytes(8))
    program = subprocess.Popen(["taskset", "-c", LOAD_CPU, sys.executable, "-c", script, str(path)])
    time.sleep(1)
    children = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
    pids = [program.pid, *map(int, children)]
    try:
        with path.open("r+b") as file:
            yield Load(pids, mmap.mmap(file.fileno(), 8))
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        program.wait()


def commands(austin: str, folder: Path) -> dict[str, list[list[str]]]:
    """Commands that run each tool, for each process; {pid} is to be put in."""
    ours, py_spy = (str(Path(sys.executable).with_name(name)) for name in ("trace-wall", "py-spy"))
    spied = [py_spy, "record", "--native", "--idle", "-r", str(HERTZ), "-f", "raw", "-d", "600"]
    return {
        "trace-wall": [[ours, "-o", "-"]],
        "py-spy": [[*spied, "-o", str(folder / "{pid}.raw"), "-p", "{pid}"]],
        "austin": [[austin, "-i", str(1_000_000 // HERTZ), "-o", str(folder / "{pid}.austin"), "-p", "{pid}"]],
    }


def started(tool: str, command: list[str], pids: list[int]) -> list[subprocess.Popen[bytes]]:
    """Starts a tool; ours traces all processes at once."""
    if tool == "trace-wall":
        each = [[*command, *(word for pid in pids for word in ("-p", str(pid)))]]
    else:
        each = [[word.replace("{pid}", str(pid)) for word in command] for pid in pids]
    quiet = subprocess.DEVNULL
    return [subprocess.Popen(["taskset", "-c", TRACER_CPU, *words], stdout=quiet, stderr=quiet) for words in each]


def measured(load: Load, tool: str, command: list[str]) -> Rates:
    """Rates while the tool runs."""
    tools = started(tool, command, load.pids)
    try:
        if tool == "trace-wall":
            wait_for_link(tools[0].pid)
        time.sleep(SETTLES)
        assert all(each.poll() is None for each in tools), f"{tool} has ended"
        return load.rates()
    finally:
        for each in tools:
            each.send_signal(signal.SIGINT)
        for each in tools:
            each.wait(60)


def compare(title: str, script: str, austin: str, folder: Path) -> None:
    found: dict[str, list[tuple[Rates, Rates, Rates]]] = {}
    with running(script, folder) as load:
        bare = [load.rates()]
        for _ in range(ROUNDS):
            for tool, (command,) in commands(austin, folder).items():
                with_tool = measured(load, tool, command)
                bare.append(load.rates())
                found.setdefault(tool, []).append((bare[-2], with_tool, bare[-1]))
    for i, of in enumerate(("of time", "on its core")):
        rates = [each[i] for each in bare]
        print(f"{title} per second {of}: {statistics.median(rates):,.0f} ({min(rates):,.0f} … {max(rates):,.0f})")
        for tool, turns in found.items():
            costs = sorted(100 * (1 - 2 * traced[i] / (before[i] + after[i])) for before, traced, after in turns)
            print(f"{tool:>12} takes {statistics.median(costs):5.1f} % ({costs[0]:.1f} … {costs[-1]:.1f})", flush=True)


def installed(folder: Path) -> str:
    """Austin, from its package."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder / "austin"), "austin-dist<4"]
    subprocess.run(command, check=True)
    return next(
        str(path) for path in (folder / "austin").rglob("austin") if path.is_file() and os.access(path, os.X_OK)
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        austin = sys.argv[1] if len(sys.argv) > 1 else installed(folder)
        print(f"{ROUNDS} rounds of {SECONDS:g} s; load average {os.getloadavg()[0]:.1f}")
        compare("computes, calls", COMPUTES, austin, folder)
        compare("passes a byte, switches", PASSES, austin, folder)
        print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
