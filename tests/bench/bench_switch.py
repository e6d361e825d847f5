"""ns that tracing adds to a context switch: ours beside libbpf-tools' offcputime, then trace-wall, in one run."""

from __future__ import annotations

import statistics

from peers import OURS, PEER, WALL, bpf_stats, pipe_seconds, run_times, running

ROUNDS = 7
ROUND_TRIPS = 200_000
GOAL = 0.5
WALL_GOAL = 1.2
"""trace-wall beside trace-offcpu: the same programs at a switch, and samples meanwhile. By the time that the kernel
counts for BPF programs, which tells less than a hundredth."""


def main() -> None:
    switches = 2 * ROUND_TRIPS
    bare: list[float] = []
    traced: dict[str, list[float]] = {OURS: [], PEER: []}
    for _ in range(ROUNDS):
        for name, seconds in traced.items():
            bare.append(pipe_seconds(ROUND_TRIPS))
            with running(name):
                seconds.append(pipe_seconds(ROUND_TRIPS))
    base = statistics.median(bare) / switches * 1e9
    print(f"{ROUNDS} rounds of {switches:,} switches, one core, the whole host, kernel and user stacks; ours complete")
    print(f"{'bare':>14} {base:8,.0f} ns a switch")
    added: dict[str, list[float]] = {}
    for name, seconds in traced.items():
        each = [second / switches * 1e9 for second in seconds]
        added[name] = [ns - base for ns in each]
        middle, low, high = statistics.median(each), min(each), max(each)
        print(f"{name:>14} {middle:8,.0f} ns a switch ({low:,.0f} … {high:,.0f}), +{middle - base:,.0f}")
    share = statistics.median(added[OURS]) / statistics.median(added[PEER])
    pairs = [a / b for a, b in zip(added[OURS], added[PEER], strict=True)]
    print(f"added time, ours / {PEER}: {share:.2f}", end="")
    print(f" (pair by pair {min(pairs):.2f} … {max(pairs):.2f}); goal: at most {GOAL}")
    with_samples()


def with_samples() -> None:
    cost: dict[str, list[float]] = {OURS: [], WALL: []}
    with bpf_stats():
        for _ in range(ROUNDS):
            for name, each in cost.items():
                with running(name) as process:
                    before = run_times(process.pid)
                    pipe_seconds(ROUND_TRIPS)
                    each.append((run_times(process.pid)[0] - before[0]) / 2 / ROUND_TRIPS)
    for name, each in cost.items():
        middle, low, high = statistics.median(each), min(each), max(each)
        print(f"{name:>14} {middle:8,.0f} ns of BPF a switch ({low:,.0f} … {high:,.0f})")
    share = statistics.median(cost[WALL]) / statistics.median(cost[OURS])
    print(f"{WALL} / {OURS}: {share:.2f}; goal: at most {WALL_GOAL}")


if __name__ == "__main__":
    main()
