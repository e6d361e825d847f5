"""Unwind tables: time to compile and to load from the cache, FDEs a second and memory, beside readelf and pyelftools.

For the files given, or a few usual ones. Goals of the largest, libLLVM: 600 ms cold, 30 ms cached, 150 MB.
"""

from __future__ import annotations

import glob
import os
import statistics
import subprocess
import sys
import tempfile
import time

from peers import status_kb

ROUNDS = 5
PEER_FDES = 1000
"""pyelftools decodes some thousand FDEs a second: it gets so many."""
USUAL = [
    "/lib/*/libc.so.6",
    "/usr/lib/*/libstdc++.so.6",
    "/usr/lib/*/libpython3.*.so.1.0",
    "/usr/lib/llvm-*/lib/libLLVM-*.so.1",
]


def measure(path: str, folder: str) -> None:
    """Prints hits, wall ms, CPU ms, FDEs, rows and MB of the peak over the start, measured in a process of its own."""
    import numpy as np
    from stallscope.tracers.images.elf import ElfFile, FileSource
    from stallscope.tracers.unwind.cache import TableCache
    from stallscope.tracers.unwind.functions import function_bounds

    np.unique(np.zeros(2))  # what numpy loads late is not the table's
    tables = TableCache(folder)
    elf = ElfFile(FileSource(os.open(path, os.O_RDONLY)))
    before = status_kb(os.getpid(), "VmHWM")
    wall, cpu = time.perf_counter(), time.process_time()
    table = tables.table(elf)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = status_kb(os.getpid(), "VmHWM") - before
    bounds = time.perf_counter()
    functions, _ = function_bounds(elf)
    bounds = time.perf_counter() - bounds
    print(tables.hits, wall * 1000, cpu * 1000, len(functions), len(table.rows), peak / 1024, bounds * 1000)


def run(path: str, folder: str) -> list[float]:
    command = [sys.executable, __file__, "--one", path, folder]
    return [float(text) for text in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()]


def readelf_seconds(path: str) -> float:
    """readelf interpreting all frames; its output is thrown away."""
    begin = time.perf_counter()
    subprocess.run(
        ["readelf", "--debug-dump=frames-interp", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return time.perf_counter() - begin


def pyelftools_fdes_per_second(path: str) -> float:
    """Rate of the first `PEER_FDES`, less those that it fails on; the parsing of the section is left out."""
    from elftools.common.exceptions import DWARFError
    from elftools.dwarf.callframe import FDE
    from elftools.elf.elffile import ELFFile

    with open(path, "rb") as file:
        entries = [e for e in ELFFile(file).get_dwarf_info(False).EH_CFI_entries() if isinstance(e, FDE)][:PEER_FDES]
        begin, decoded = time.perf_counter(), 0
        for entry in entries:
            try:
                entry.get_decoded()
            except (DWARFError, KeyError, ValueError):  # one of glibc's
                continue
            decoded += 1
        return decoded / (time.perf_counter() - begin)


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        measure(*sys.argv[2:4])
        return
    columns = ("cold ms", "CPU ms", "cached", "bounds", "FDEs", "rows", "MB", "FDEs/s", "readelf/s", "pyelf/s")
    print(f"medians of {ROUNDS} rounds; ms of wall time; FDEs/s by CPU time, readelf's by wall time")
    print(" ".join(f"{name:>9}" for name in columns), " file")
    for path in sys.argv[1:] or [path for pattern in USUAL for path in sorted(glob.glob(pattern))[-1:]]:
        cold, cached = [], []
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory() as folder:
                cold.append(run(path, folder))
                cached.append(run(path, folder))
        assert {taken[0] for taken in cached} == {1}
        _, wall, cpu, fdes, rows, peak, bounds = (statistics.median(column) for column in zip(*cold, strict=True))
        again = statistics.median(taken[1] for taken in cached)
        speeds = (fdes / cpu * 1000, fdes / readelf_seconds(path), pyelftools_fdes_per_second(path))
        numbers = (wall, cpu, again, bounds, fdes, rows, peak, *speeds)
        print(" ".join(f"{number:9.1f}" if number < 1e4 else f"{number:9.0f}" for number in numbers), f" {path}")


if __name__ == "__main__":
    main()
