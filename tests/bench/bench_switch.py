"""ns that tracing adds to a context switch, ours beside libbpf-tools' offcputime, interleaved in one run."""

from __future__ import annotations

import statistics

from peers import OURS, PEER, pipe_seconds, running

ROUNDS = 7
ROUND_TRIPS = 200_000
GOAL = 0.5


def main() -> None:
    switches = 2 * ROUND_TRIPS
    bare: list[float] = []
    traced: dict[str, list[float]] = {OURS: [], PEER: []}
    for _ in range(ROUNDS):
        for name in (OURS, PEER):
            bare.append(pipe_seconds(ROUND_TRIPS))
            with running(name):
                traced[name].append(pipe_seconds(ROUND_TRIPS))
    base = statistics.median(bare)
    print(f"{ROUNDS} rounds of {switches:,} switches, one core, the whole host, kernel and user stacks; ours complete")
    print(f"{'bare':>14} {base / switches * 1e9:8,.0f} ns a switch")
    added = {}
    for name, seconds in traced.items():
        each = [second / switches * 1e9 for second in seconds]
        added[name] = statistics.median(each) - base / switches * 1e9
        middle, low, high = statistics.median(each), min(each), max(each)
        print(f"{name:>14} {middle:8,.0f} ns a switch ({low:,.0f} … {high:,.0f}), +{added[name]:,.0f}")
    pairs = [(a - base) / (b - base) for a, b in zip(traced[OURS], traced[PEER], strict=True)]
    print(f"added time, ours / {PEER}: {added[OURS] / added[PEER]:.2f}", end="")
    print(f" (pair by pair {min(pairs):.2f} … {max(pairs):.2f}); goal: at most {GOAL}")


if __name__ == "__main__":
    main()
