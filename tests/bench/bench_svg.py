"""200,000 unique folded stacks (60 MB) to SVG on one core, beside flamegraph.pl: CPU time, peak memory, size.

FlameGraph is looked for in the folder that the environment variable FLAMEGRAPH names, in PATH, and where distributions
put it; without it ours runs alone. Both in turn, medians.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

STACKS, HOT, FUNCTIONS, DEPTH = 200_000, 2_000, 5_000, 24
ROUNDS = 3
GOAL_SECONDS, GOAL_MB = 3, 250
PLACES = ("/usr/share/flamegraph", "/usr/local/share/flamegraph", "/opt/FlameGraph")
CORE = "1"


def folded_text() -> Iterator[str]:
    """Call paths that share their beginnings, in eight processes; a few are hot, most are rare."""
    choice = random.Random(7)
    names = [f"module_{i % 40}::Class{i % 97}::function_{i}" for i in range(FUNCTIONS)]
    paths = [[choice.randrange(20)] for _ in range(8)]
    seen = set()
    while len(seen) < STACKS:
        path = choice.choice(paths)
        kept = path[: max(1, len(path) - choice.randrange(4))]
        path = (kept + [choice.randrange(FUNCTIONS) for _ in range(choice.randint(1, 4))])[:DEPTH]
        if len(paths) < HOT:
            paths.append(path)
        if len(path) < 4 or tuple(path) in seen:
            continue
        seen.add(tuple(path))
        stack = ";".join(names[i] for i in path)
        yield f"python3-{4000 + len(seen) % 8};{stack} {int(20 * choice.paretovariate(2))}\n"


def peer() -> str:
    """The path of flamegraph.pl, "" when there is none."""
    folders = [os.environ.get("FLAMEGRAPH", ""), *os.environ["PATH"].split(":"), *PLACES]
    return shutil.which("flamegraph.pl", path=":".join(filter(None, folders))) or _readable(folders)


def _readable(folders: list[str]) -> str:
    """A copy that is not executable will do: Perl is asked to run it."""
    found = (Path(folder, "flamegraph.pl") for folder in folders if folder)
    return next((str(path) for path in found if path.is_file()), "")


def measure(command: list[str], output: Path) -> tuple[float, float]:
    """CPU seconds and peak MB of one run with its standard output in a file."""
    with output.open("wb") as file:
        pid = os.posix_spawnp(
            command[0],
            command,
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, file.fileno(), 1)],
        )
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit(f"{command[-1]}: status {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def report(name: str, runs: list[tuple[float, float]], output: Path) -> tuple[float, float]:
    seconds, peak = (statistics.median(run[i] for run in runs) for i in (0, 1))
    print(f"{name:>14} {seconds:6.2f} s of CPU, peak {peak:4.0f} MB, SVG {output.stat().st_size / 1e6:.1f} MB")
    return seconds, peak


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "stacks.folded")
        with source.open("w") as file:
            file.writelines(folded_text())
        print(f"{STACKS:,} unique stacks, {source.stat().st_size / 1e6:.0f} MB, median of {ROUNDS}")
        convert = str(Path(sys.executable).with_name("trace-convert"))
        pinned = ["taskset", "-c", CORE]
        svg, other = Path(folder, "ours.svg"), Path(folder, "peer.svg")
        ours = [*pinned, convert, "--force", "-o", str(svg), str(source)]
        script = peer()
        runs: dict[str, list[tuple[float, float]]] = {"trace-convert": [], "flamegraph.pl": []}
        for _ in range(ROUNDS):
            runs["trace-convert"].append(measure(ours, Path(folder, "out")))
            if script:
                runs["flamegraph.pl"].append(measure([*pinned, "perl", script, str(source)], other))
        seconds, peak = report("trace-convert", runs["trace-convert"], svg)
        if script:
            report("flamegraph.pl", runs["flamegraph.pl"], other)
        else:
            print("flamegraph.pl was not found: name its folder in FLAMEGRAPH")
        if seconds > GOAL_SECONDS or peak > GOAL_MB:
            sys.exit(f"the goal is {GOAL_SECONDS} s and {GOAL_MB} MB")


if __name__ == "__main__":
    main()
