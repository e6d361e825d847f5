"""A scan of a host with 1,000 processes and 10,000 threads that all do something.

How long after the trace its report is there, the peak memory of the command and of the processes that it starts, and
what it counts as lost. `python tests/bench/bench_scan_host.py --pages` also writes a folder and a page.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

PROCESSES, THREADS = 1_000, 10
SECONDS = 10
PERIOD_MS = 900
"""Time between two rounds of a thread: 10,000 threads leave most of two cores to the scan then."""
GOAL_S, GOAL_MB = 30, 512
LOAD = Path("build/workloads/full_host")
SCAN = Path(sys.executable).with_name("trace-scan")


class Memory(threading.Thread):
    """Peak of the proportional memory of a process and its descendants, taken a few times a second."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid, self.peak, self.own, self.ends = pid, 0, 0, threading.Event()

    def run(self) -> None:
        while not self.ends.wait(0.25):
            family = [self._pid, *_descendants(self._pid)]
            sizes = [_pss(pid) for pid in family]
            self.peak, self.own = max(self.peak, sum(sizes)), max(self.own, sizes[0])


def _descendants(pid: int) -> list[int]:
    try:
        children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [*children, *(each for child in children for each in _descendants(child))]


def _pss(pid: int) -> int:
    """KiB."""
    try:
        found = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) if found else 0


def measure(processes: int, outputs: list[str]) -> None:
    arguments = [str(SCAN), "-d", str(SECONDS), "--json", *(part for path in outputs for part in ("-o", path))]
    begin = time.monotonic()
    with tempfile.TemporaryFile("w+") as report, tempfile.TemporaryFile("w+") as said:
        scan = subprocess.Popen(arguments, stdout=report, stderr=said)
        memory = Memory(scan.pid)
        memory.start()
        _, status, usage = os.wait4(scan.pid, 0)
        scan.returncode = os.waitstatus_to_exitcode(status)
        took = time.monotonic() - begin
        memory.ends.set()
        memory.join()
        report.seek(0)
        said.seek(0)
        if scan.returncode:
            raise SystemExit(said.read())
        found = json.load(report)
    summary = found["summary"]
    rows, pids = len(found["processes"]), sum(len(each["pids"]) for each in found["processes"])
    after = took - summary["duration_ns"] / 1e9
    print(f"report after {after:.1f} s beside the {SECONDS} s of the trace (goal {GOAL_S}),", end=" ")
    print(f"CPU {usage.ru_utime + usage.ru_stime:.1f} s")
    print(f"memory at most {memory.peak / 1024:.0f} MB with helpers, {memory.own / 1024:.0f} without (goal {GOAL_MB})")
    print(f"processes {pids:,} in {rows:,} rows (at least {processes:,}), threads {summary['times']['threads']:,}")
    print(f"lost: {json.dumps(summary.get('lost'))}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--pages", action="store_true", help="with -o scan.d and -o scan.html")
    parser.add_argument("--keep", default="", help="folder for these files")
    given = parser.parse_args()
    load = subprocess.Popen(
        [LOAD, "--wait", "90", str(given.processes), str(THREADS), str(PERIOD_MS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert load.stdin and load.stdout
    try:
        load.stdout.readline()
        load.stdin.write(b"x")
        load.stdin.flush()
        time.sleep(3)  # until all threads are there
        with tempfile.TemporaryDirectory() as folder:
            to = given.keep or folder
            measure(given.processes, [f"{to}/scan.d", f"{to}/scan.html"] if given.pages else [])
    finally:
        load.kill()
        load.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
