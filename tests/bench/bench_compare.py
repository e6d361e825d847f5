"""False changes of ``trace-scan --compare``: pairs of runs of pgbench between which nothing was changed.

Prints the number of pairs in which any row was called a change. The runs of the two sides take turns, so that a slow
drift of the machine is on both. ``--keep FOLDER`` keeps the captures; a folder that has some is read again without
tracing, and completed. For a short run: `python tests/bench/bench_compare.py --pairs 2 --seconds 2`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench_scan_cost import NOBODY, Server, postgres_server

SCAN = Path(sys.executable).with_name("trace-scan")
CLIENTS = 4
RISE = 0.5
"""Seconds of pgbench before the scan."""
LONGEST = 90
"""Seconds after which a scan has failed."""
GOAL = 0.05
"""Share of pairs that may have a change."""


def scan(server: Server, seconds: float, path: Path) -> None:
    """Traces the server and a new pgbench, which are all that is in the capture."""
    command = [*server.command("pgbench"), "-n", "-c", str(CLIENTS), "-T", str(LONGEST), "postgres"]
    bench = subprocess.Popen(command, user=NOBODY, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
    try:
        time.sleep(RISE)
        pids = f"{server.pid},{bench.pid}"
        options = ["-p", pids, "--children", "-d", f"{seconds:g}", "-o", str(path)]
        subprocess.run([SCAN, *options], check=True, capture_output=True, timeout=LONGEST)
    finally:
        bench.terminate()
        bench.wait()


def compared(before: list[Path], after: list[Path]) -> dict[str, Any]:
    """JSON of --compare on the runs of two sides."""
    sides = [",".join(map(str, side)) for side in (before, after)]
    done = subprocess.run([SCAN, "--compare", *sides, "--json"], check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def pair(server: Server | None, folder: Path, given: argparse.Namespace) -> bool:
    """Traces what is not there of a pair, and prints what is said of it. Returns whether a row is called a change."""
    sides: tuple[list[Path], list[Path]] = ([], [])
    for i in range(given.runs):
        for j in (0, 1) if i % 2 else (1, 0):
            path = folder / f"{'ab'[j]}{i}.pb.gz"
            if not path.exists() and server is not None:
                scan(server, given.seconds, path)
            sides[j].append(path)
    made = compared(*sides)
    rows = [each for each in (*made["changes"], *made["steps"]) if each["is_change"]]
    chances = [each["chance"] for each in made["changes"] if each["chance"] is not None]
    print(
        f"{folder.name}: {made['tested']} rows, least p {min(chances, default=1):.3g}, changes: {len(rows)}", flush=True
    )
    for each in rows:
        print(f"    {json.dumps(each)}")
    return bool(rows)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--runs", type=int, default=3, help="of each side")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--keep", type=Path, help="folder of captures")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as other, postgres_server() as server:
        kept = given.keep or Path(other)
        wrong = 0
        for i in range(given.pairs):
            folder = kept / f"pair{i:02}"
            folder.mkdir(parents=True, exist_ok=True)
            wrong += pair(server, folder, given)
    share = wrong / given.pairs
    print(f"{wrong} of {given.pairs} pairs of {given.runs} + {given.runs} runs have a change; goal: {GOAL:.0%}")
    sys.exit(share > GOAL)


if __name__ == "__main__":
    main()
