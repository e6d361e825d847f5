"""Cost after a trace with very many stacks: names, the profile, the summary, a flame graph and a .pb.gz.

CPU time and peak memory of a process that has such a trace in memory. The stacks are made of functions of the
interpreter that runs this, and of the kernel's. `python tests/bench/bench_finish.py 64000 771000`.
"""

from __future__ import annotations

import io
import os
import random
import resource
import sys
import tempfile
import time
from pathlib import Path
from time import time_ns

from stallscope.converters.summary.render import render
from stallscope.converters.summary.summarize import summarize
from stallscope.converters.writers import output as writers
from stallscope.tracers.engines.ebpf.assemble import profile_of
from stallscope.tracers.engines.ebpf.capture import Capture
from stallscope.tracers.engines.ebpf.lives import Lives
from stallscope.tracers.engines.rows import Row
from stallscope.tracers.kernel.records import COUNTERS, RUNNABLE, STATES, Origin, Thread, ThreadRecord, WaitSum
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.symbols.process import ProcessSpaces

GOALS = {64_000: (3, 300), 771_000: (30, 1200)}
"""Stacks: seconds, and MB."""
USER, KERNEL, THREADS = 22, 9, 64


def addresses() -> list[int]:
    """Return addresses in the code that this process has mapped from files."""
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        area, permissions, _, _, _, *path = line.split(maxsplit=5)
        if "x" in permissions and path and path[0].startswith("/"):
            begin, end = (int(each, 16) for each in area.split("-"))
            found += range(begin, end, 480)
    return found


def kernel_addresses() -> list[int]:
    lines = Path("/proc/kallsyms").read_text().splitlines()[:20_000]
    return [int(line.split()[0], 16) + 9 for line in lines if line.split()[1] in "tT"]


def capture_of(stacks: int) -> Capture:
    """Capture that a trace of 10 s has in memory when it ends."""
    chance = random.Random(1)
    code, kernel = addresses(), kernel_addresses()
    # Callers are few, and shared; what they call differs.
    outer = [tuple(chance.choices(code, k=USER - 6)) for _ in range(500)]
    known = {i + 1: tuple(chance.choices(kernel, k=KERNEL)) for i in range(500)}
    rows = []
    blocked = [0] * THREADS
    for i in range(stacks):
        known[1000 + i] = tuple(chance.choices(code, k=6)) + chance.choice(outer)
        origin = Origin(1000 + i, chance.randint(1, 500), 0, os.getpid() + i % THREADS, os.getpid(), 1 + i % THREADS, 1)
        time = chance.randint(1000, 10**7 * 64_000 // stacks)
        rows.append(Row(origin, "interruptible", (time, 1, 1000, time)))
        blocked[i % THREADS] += time
    spaces = ProcessSpaces()
    spaces.adopt(os.getpid())
    columns, counters = OffCpu().columns, dict.fromkeys(COUNTERS, 0)
    threads = [record_of(os.getpid() + i, time) for i, time in enumerate(blocked)]
    return Capture(
        0, 10**10, time_ns(), columns, rows, {}, threads, known, counters, 0, Lives(threads, (), spaces), spaces
    )


def record_of(tid: int, blocked: int) -> ThreadRecord:
    life = 1 + tid - os.getpid()
    key = Origin(0, 0, 0, tid, os.getpid(), life, 1)
    by_state = tuple(blocked * (state == "interruptible") for state in STATES)
    thread = Thread(
        0, 0, 0, 0, 0, 10**10 - blocked, by_state, 1, (0,) * 24, key, key, WaitSum(*[0] * 7), RUNNABLE, 0, first=life
    )
    return ThreadRecord(10**10, b"bench", thread, exited=True)


def finish(stacks: int, output: str) -> None:
    """Makes a capture, and all that follows from it."""
    capture = capture_of(stacks)
    begin, held = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    def told(what: str) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{what:>20} {time.process_time() - begin:6.1f} s CPU  {peak:6.0f} MB peak", flush=True)

    print(f"{stacks:,} stacks of {USER + KERNEL} frames; {held:.0f} MB of them when the trace has ended")
    profile = profile_of(capture, "Off-CPU time")
    del capture  # as the commands do
    told("profile")
    render(summarize(profile), io.StringIO())
    told("summary")
    for suffix in (".svg", ".pb.gz"):
        writers.write(profile, Path(output, f"x{suffix}"))
        told(suffix)
    if goal := GOALS.get(stacks):
        print(f"goal: {goal[0]} s, {goal[1]} MB")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for stacks in [int(each) for each in sys.argv[1:]] or [64_000]:
            pid = os.fork()
            if not pid:
                finish(stacks, folder)
                os._exit(0)
            os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
