"""MB per second of CPU time (and of wall time), and peak memory of the text readers, one process each, beside
FlameGraph's Perl scripts.

    bench_readers.py [--mb 200] [--rounds 3] [--flamegraph FOLDER] [READER...]

The Perl scripts are taken from the folder, or $FLAMEGRAPH, or the PATH; without them ours are measured alone. Ours and
theirs take turns on the same input; what is printed are the medians. perf and folded read 200 MB, the others 40.
chrome and speedscope are read as for a flame graph, chrome-timeline as for an output that shows times.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import texts_stacks as stacks
import texts_worst as worst

try:
    import texts_python as python
except ImportError:
    python = None  # type: ignore[assignment]

_CHILD = """
import resource, sys
from stallscope.converters.readers import detect
from stallscope.converters.readers.base.options import ReadOptions
name, path = sys.argv[1:]
reader, _, mode = name.partition("-")
_, profile = detect.read(path, ReadOptions(timeline=mode == "timeline"), reader)
print(len(profile.samples))
"""


class Target(NamedTuple):
    """A reader: what it is measured on, and beside what. ``text(size)`` yields until there are ``size`` bytes."""

    text: Callable[[int], Iterator[bytes]]
    goal: int
    peer: str = ""
    mb: int = 40


class Run(NamedTuple):
    seconds: float
    """CPU time, of user and system."""
    wall: float
    peak: float
    """MB"""
    output: str


def perf_text(size: int) -> Iterator[bytes]:
    """Leaves vary in their address, callers in one of three call sites."""
    choice = random.Random(1)
    names = [f"module_{i % 40}::function_number_{i}" for i in range(stacks.FUNCTIONS)]
    bodies = []
    for path in stacks.paths(choice):
        lines = []
        for depth, i in enumerate(reversed(path)):
            offset = 16 * choice.randrange(12 if depth == 0 else 3)
            address = stacks.BASE + 4096 * i + offset
            lines.append(f"\t    {address:x} {names[i]}+{offset:#x} (/usr/lib/lib{i % 40}.so)")
        bodies.append("\n".join(lines))
    number = written = 0
    while written < size:
        number += 1
        leaf, _, callers = choice.choice(bodies).partition("\n")
        leaf = leaf.replace("+0x", f"+0x{choice.randrange(8)}")
        head = f"python3 {4000 + number % 8}/{4100 + number % 64} [{number % 32:03}] {5000 + number / 9973:.6f}:"
        piece = f"{head} {choice.randrange(900000, 1100000)} cycles: \n{leaf}\n{callers}\n\n".encode()
        written += len(piece)
        yield piece


def folded_text(size: int) -> Iterator[bytes]:
    """Each stack several times, as in files that were put together."""
    choice = random.Random(1)
    lines = [
        ";".join([f"rank-{i % 8}", *(f"module_{n % 40}::function_number_{n}" for n in path)])
        for i, path in enumerate(stacks.paths(choice))
    ]
    written = 0
    while written < size:
        piece = f"{choice.choice(lines)} {choice.randrange(1, 5000)}\n".encode()
        written += len(piece)
        yield piece


TARGETS = {
    "perf": Target(perf_text, 100, "stackcollapse-perf.pl", 200),
    "folded": Target(folded_text, 90, mb=200),
    "stap": Target(stacks.stap, 90, "stackcollapse-stap.pl"),
    "stap_lines": Target(stacks.stap_lines, 10),
    "bpftrace": Target(stacks.bpftrace, 90, "stackcollapse-bpftrace.pl"),
    "gdb": Target(stacks.eu_stack, 90, "stackcollapse-elfutils.pl"),
    "dtrace": Target(stacks.dtrace, 90, "stackcollapse.pl"),
    "bcc": Target(stacks.bcc, 90),
}
for name in ("pyspy", "austin", "faulthandler", "chrome", "vtune", "perf_sched"):
    if python is not None and hasattr(python, name):
        TARGETS[name] = Target(getattr(python, name), 90)
    if name == "chrome":
        TARGETS["chrome-timeline"] = TARGETS[name]
if python is not None:
    TARGETS["speedscope"] = Target(python.speedscope, 90)
    TARGETS["speedscope-evented"] = Target(python.speedscope_evented, 90)
TARGETS["perf-offsets"] = Target(worst.perf_offsets, 90, "stackcollapse-perf.pl")
TARGETS["chrome-distinct"] = Target(worst.chrome_distinct, 90)


def measured(command: list[str]) -> Run:
    """One command, to its end. Exits when it fails."""
    with tempfile.TemporaryFile() as out:
        begin = time.monotonic()
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"{' '.join(command[:3])} failed with {process.returncode}")
        out.seek(0)
        text = out.read(100).decode(errors="replace")
    return Run(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024, text)


def find_peer(script: str, folder: str) -> str:
    """Path of one of FlameGraph's scripts, "" when it is not here."""
    if not script or not shutil.which("perl"):
        return ""
    return shutil.which(script, path=folder or os.environ.get("FLAMEGRAPH") or os.environ["PATH"]) or ""


def bench(name: str, target: Target, size: int, given: argparse.Namespace) -> None:
    peer = find_peer(target.peer, given.flamegraph)
    ours, theirs = [], []
    with tempfile.NamedTemporaryFile(suffix=f".{name}") as file:
        written = sum(file.write(piece) for piece in target.text(size)) / 1e6
        file.flush()
        for i in range(given.rounds):
            ours.append(measured([sys.executable, "-c", _CHILD, name, file.name]))
            if peer and i + 1 < max(given.rounds, 2):
                theirs.append(measured(["perl", peer, file.name]))
    speed = written / statistics.median(run.seconds for run in ours)
    wall = written / statistics.median(run.wall for run in ours)
    peak = statistics.median(run.peak for run in ours)
    line = (
        f"{name:>15} {speed:5.0f} MB/s (wall {wall:.0f}; {written:.0f} MB), peak {peak:4.0f} MB,"
        f" {int(ours[0].output):>7,} distinct stacks; goal {target.goal} MB/s"
    )
    if theirs:
        other = written / statistics.median(run.seconds for run in theirs)
        peak = statistics.median(run.peak for run in theirs)
        line += f"; {target.peer} {other:.0f} MB/s, peak {peak:.0f} MB: {speed / other:.1f} times"
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("readers", nargs="*", metavar="READER")
    parser.add_argument("--mb", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--flamegraph", default="", metavar="FOLDER")
    given = parser.parse_args()
    for name in given.readers or TARGETS:
        target = TARGETS[name]
        bench(name, target, (given.mb or target.mb) * 1_000_000, given)


if __name__ == "__main__":
    main()
