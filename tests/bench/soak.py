"""A long `trace-offcpu -a --every` under storms: is the memory flat, is nothing lost untold, is there no gap?

The storms: threads with new stacks all the time, and processes that begin and end. As root, after `make workloads`:
`python tests/bench/soak.py --minutes 30 --every 60s`. Prints the memory of the tracer, of the processes that write the
profiles, and of both together, each minute, then a line per interval; ends with status 1 if something is wrong. The
memory is what a process has for itself: the kernel's tables that are mapped there, which `--unwind-memory` limits, are
not part of it.
"""

from __future__ import annotations

import argparse
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median

from stallscope.converters import pprof
from stallscope.converters.model import Profile
from stallscope.converters.phrases.remarks import worded
from stallscope.tracers.engines.ebpf.remarks import WITHOUT_ACCOUNT

WORKLOADS = Path(__file__).resolve().parents[2] / "build" / "workloads"
TRACE = str(Path(sys.executable).with_name("trace-offcpu"))
GROWTH = 0.15
"""Share by which the memory of the last third may exceed that of the first one: medians."""
MEMORY = 400 << 20
"""The default of `--memory`."""
MS = 1_000_000
_ACCOUNTS = (WITHOUT_ACCOUNT, "exit and exec records")
"""Kinds of losses that leave threads without a part of their account."""


class Storms:
    """Started again when they end."""

    def __init__(self, microseconds: int) -> None:
        self._commands = [
            [WORKLOADS / "many_stacks", "4", "2000000", str(1 << 24), str(microseconds)],
            [WORKLOADS / "fork_storm", "20000", "4"],
        ]
        self._running: list[subprocess.Popen[bytes] | None] = [None] * len(self._commands)

    def keep_up(self) -> None:
        for i, command in enumerate(self._commands):
            process = self._running[i]
            if process is None or process.poll() is not None:
                self._running[i] = subprocess.Popen(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def end(self) -> None:
        for process in self._running:
            if process:
                process.kill()
                process.wait()


def memory_of(pid: int) -> int:
    """Bytes of private memory, without what a writer still shares with the tracer; 0 when it is gone."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    found = {name: int(size) << 10 for name, size in re.findall(r"^(\w+): +(\d+) kB", text, re.MULTILINE)}
    # A writer's parent has pages in common with it: both have their part of them.
    return found.get("Pss_Anon", found.get("Anonymous", 0))


def children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def problems_of(profile: Profile) -> list[str]:
    """Problems of an interval by itself."""
    found = []
    off: Counter[tuple[int, int]] = Counter()
    for thread in profile.threads:
        if thread.on_cpu + thread.runnable + sum(thread.blocked.values()) != thread.wall:
            found.append(f"the account of thread {thread.tid} does not add up")
        off[thread.pid, thread.tid] += thread.wall - thread.on_cpu
    waits = sum(sample.values[0] for sample in profile.samples)
    if abs(waits - sum(off.values())) > MS + inexact(profile) and not any(map(profile.lost.get, _ACCOUNTS)):
        found.append(
            f"rows have {waits / 1e9:.3f} s, accounts {sum(off.values()) / 1e9:.3f} s, and nothing tells of it"
        )
    return found


def inexact(profile: Profile) -> float:
    """ns by which the accounts of all threads together may be wrong, as the profile says."""
    found = [re.search(r"inexact by up to ([\d.]+) (ns|µs|ms|s)$", comment) for comment in worded(profile.comments)]
    units = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
    return len(profile.threads) * sum(float(each[1]) * units[each[2]] for each in found if each)


def share(profile: Profile, name: str) -> float:
    time_of = sum(sample.values[0] for sample in profile.samples if sample.stack[-1].name == name)
    return time_of / max(profile.total("off-cpu"), 1)


def read(folder: Path) -> list[str]:
    """Prints a line per interval; returns what is wrong."""
    wrong = []
    before: Profile | None = None
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            profile = pprof.load(file)
        lost = {
            kind: number for kind, number in profile.lost.items() if number and not re.match("stacks|frames|user", kind)
        }
        shares = {name: share(profile, name) for name in ("[other stacks]", "[lost]", "[stack lost]")}
        told = ", ".join(f"{name} {part:.2%}" for name, part in shares.items() if part)
        print(
            f"{path.name}: {profile.duration_ns / 1e9:.3f} s, {len(profile.threads):,} threads, "
            f"{len(profile.samples):,} rows; {told}; lost: {lost or 'nothing'}",
            flush=True,
        )
        wrong += [f"{path.name}: {problem}" for problem in problems_of(profile)]
        if before and abs(before.start_ns + before.duration_ns - profile.start_ns) > MS:
            wrong.append(f"{path.name}: a gap before it")
        before = profile
    return wrong


def soak(minutes: float, every: str, folder: Path, microseconds: int) -> list[str]:
    storms = Storms(microseconds)
    tracer = None
    memory: list[int] = []
    writers = together = 0
    try:
        storms.keep_up()
        command = [TRACE, "-a", "--every", every, "-o", str(folder / "soak-%Y%m%d-%H%M%S.pb.gz")]
        tracer = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        end, told = time.monotonic() + minutes * 60, time.monotonic()
        while time.monotonic() < end and tracer.poll() is None:
            time.sleep(1)
            storms.keep_up()
            memory.append(memory_of(tracer.pid))
            beside = [memory_of(child) for child in children(tracer.pid)]
            writers, together = max(writers, *beside, 0), max(together, memory[-1] + sum(beside))
            if time.monotonic() >= told + 60:
                told += 60
                print(
                    f"{len(memory):5} s: {memory[-1] >> 20} MB, at most {max(memory) >> 20}; writers {writers >> 20}, "
                    f"together {together >> 20}"
                )
                sys.stdout.flush()
        if tracer.poll() is not None:
            return [f"the tracer ended with status {tracer.returncode}"]
        tracer.send_signal(signal.SIGINT)
        wrong = [f"status {status}"] if (status := tracer.wait(600)) else []
    finally:
        storms.end()
        if tracer and tracer.poll() is None:
            tracer.kill()
            tracer.wait()
    third = len(memory) // 3
    first, last = round(median(memory[:third])), round(median(memory[-third:]))
    print(
        f"memory: {first >> 20} MB in the first third, {last >> 20} in the last (medians), at most "
        f"{max(memory) >> 20}; writers {writers >> 20}, together {together >> 20}"
    )
    if last > (1 + GROWTH) * first:
        wrong.append("the memory grows")
    if together > MEMORY:
        wrong.append(f"it takes more than {MEMORY >> 20} MB")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description="A long trace under storms.")
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--every", default="10s")
    parser.add_argument("--microseconds", type=int, default=20, help="wait of the threads between two stacks")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wrong = soak(given.minutes, given.every, Path(folder), given.microseconds)
        wrong += read(Path(folder))
    for problem in wrong:
        print(problem)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
