"""Time from the command's start to its first attached probe, and its memory, ours beside libbpf-tools' offcputime."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from peers import OURS, PEER, command, has_link, status_kb

ROUNDS = 11
GOAL_MS, GOAL_MB = 150, 60


def start_once(name: str) -> tuple[float, int]:
    """(ms to the first link, KB resident a second later)."""
    begin = time.monotonic()
    process = subprocess.Popen(command(name), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not has_link(process.pid):
            if process.poll() is not None or time.monotonic() - begin > 30:
                sys.exit(f"{name} attached nothing")
            time.sleep(0.0005)
        took = (time.monotonic() - begin) * 1000
        time.sleep(1)
        return took, status_kb(process.pid, "VmRSS")
    finally:
        process.kill()
        process.wait()


def main() -> None:
    results: dict[str, list[tuple[float, int]]] = {OURS: [], PEER: []}
    for _ in range(ROUNDS):
        for name, taken in results.items():
            taken.append(start_once(name))
    print(f"{ROUNDS} starts of each in turn, the whole host in scope")
    for name, taken in results.items():
        times = [ms for ms, _ in taken]
        resident = statistics.median(kb for _, kb in taken) / 1024
        print(
            f"{name:>14} first probe after {statistics.median(times):4.0f} ms ({min(times):.0f} … {max(times):.0f}),"
            f" {resident:.0f} MB resident while it traces"
        )
    print(f"goal: first probe within {GOAL_MS} ms, under {GOAL_MB} MB")


if __name__ == "__main__":
    main()
