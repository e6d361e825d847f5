"""MB/s and peak memory of the text readers on 200 MB that is made for it, one process and one core each."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

SIZE = 200_000_000
GOALS = {"perf": 100, "folded": 90}
FUNCTIONS, DEPTH, STACKS = 5_000, (8, 28), 50_000


def stacks(choice: random.Random) -> list[list[int]]:
    """Call paths that share their beginnings, as those of a program do."""
    paths = [[choice.randrange(20)]]
    while len(paths) < STACKS:
        path = choice.choice(paths)
        keep = choice.randint(1, len(path))
        more = choice.randint(1, 6)
        longer = path[:keep] + [choice.randrange(FUNCTIONS) for _ in range(more)]
        paths.append(longer[: DEPTH[1]])
    return [path for path in paths if len(path) >= DEPTH[0]]


def perf_text(choice: random.Random) -> Iterator[bytes]:
    """Leaves vary in their address, callers in one of three call sites."""
    names = [f"module_{i % 40}::function_number_{i}" for i in range(FUNCTIONS)]
    paths = stacks(choice)
    bodies = []
    for path in paths:
        lines = []
        for depth, i in enumerate(reversed(path)):
            offset = 16 * choice.randrange(12 if depth == 0 else 3)
            lines.append(
                f"\t    {0x55D0_0000_0000 + 4096 * i + offset:x} {names[i]}+{offset:#x} (/usr/lib/lib{i % 40}.so)"
            )
        bodies.append("\n".join(lines))
    number = 0
    while True:
        number += 1
        leaf, _, callers = choice.choice(bodies).partition("\n")
        leaf = leaf.replace("+0x", f"+0x{choice.randrange(8)}")
        head = f"python3 {4000 + number % 8}/{4100 + number % 64} [{number % 32:03}] {5000 + number / 9973:.6f}:"
        yield f"{head} {choice.randrange(900000, 1100000)} cycles: \n{leaf}\n{callers}\n\n".encode()


def folded_text(choice: random.Random) -> Iterator[bytes]:
    """Each stack several times, as in files that were put together."""
    paths = stacks(choice)
    lines = [
        ";".join([f"rank-{i % 8}", *(f"module_{n % 40}::function_number_{n}" for n in p)]) for i, p in enumerate(paths)
    ]
    while True:
        yield f"{choice.choice(lines)} {choice.randrange(1, 5000)}\n".encode()


def measure(name: str, path: str) -> None:
    """In a process of its own: the peak is this reader's."""
    from stallscope.converters.readers import detect
    from stallscope.converters.readers.options import ReadOptions

    begin = time.process_time()
    _, profile = detect.read(path, ReadOptions(), name)
    took = time.process_time() - begin
    size = Path(path).stat().st_size / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{name:>8} {size / took:6.0f} MB/s ({size:.0f} MB in {took:.2f} s of CPU), peak {peak:.0f} MB,"
        f" {len(profile.samples):,} distinct stacks; goal: {GOALS[name]} MB/s"
    )


def main() -> None:
    for name, text in (("perf", perf_text), ("folded", folded_text)):
        with tempfile.NamedTemporaryFile(suffix=f".{name}") as file:
            size = 0
            for piece in text(random.Random(1)):
                size += file.write(piece)
                if size >= SIZE:
                    break
            file.flush()
            subprocess.run([sys.executable, __file__, name, file.name], check=True)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        measure(*sys.argv[1:])
    else:
        main()
