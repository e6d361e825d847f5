"""Unwind tables: time to compile and to load from the cache, rows and memory, for files given or a few usual ones."""

from __future__ import annotations

import glob
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 5
USUAL = [
    "/lib/*/libc.so.6",
    "/usr/lib/*/libstdc++.so.6",
    "/usr/lib/*/libpython3.*.so.1.0",
    "/usr/lib/llvm-*/lib/libLLVM-*.so.1",
]


def measure(path: str, folder: str) -> None:
    """In a process of its own: prints hits, wall ms, CPU ms, rows and MB of the peak over the start."""
    import numpy as np
    from stallscope.tracers.symbols.elf import ElfFile, FileSource
    from stallscope.tracers.unwind.cache import TableCache

    np.unique(np.zeros(2))  # what numpy loads late is not the table's
    tables = TableCache(folder)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    table = tables.table(ElfFile(FileSource(os.open(path, os.O_RDONLY))))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(tables.hits, wall * 1000, cpu * 1000, len(table.rows), peak / 1024)


def run(path: str, folder: str) -> list[float]:
    command = [sys.executable, __file__, "--one", path, folder]
    return [float(text) for text in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()]


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        measure(*sys.argv[2:4])
        return
    print(f"{'cold ms':>8} {'CPU':>6} {'cached ms':>9} {'rows':>9} {'MB':>6}  file ({ROUNDS} rounds, medians)")
    for path in sys.argv[1:] or [path for pattern in USUAL for path in sorted(glob.glob(pattern))]:
        cold, cached = [], []
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory() as folder:
                cold.append(run(path, folder))
                cached.append(run(path, folder))
        assert {taken[0] for taken in cached} == {1}
        _, wall, cpu, rows, peak = (statistics.median(column) for column in zip(*cold, strict=True))
        again = statistics.median(taken[1] for taken in cached)
        print(f"{wall:8.1f} {cpu:6.1f} {again:9.1f} {rows:9.0f} {peak:6.1f}  {path}")


if __name__ == "__main__":
    main()
