"""Common code of the benches: the commands to compare, started and ended; `perf bench sched pipe` as the load."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OURS = "trace-offcpu"
WALL = "trace-wall"
PEER = "offcputime"
LOAD_CPU, TRACER_CPU = "1", "0"
"""The load has a core for itself: across cores `perf bench sched pipe` measures remote wake-ups."""

PERF_EVENT = 7
"""BPF_PROG_TYPE_PERF_EVENT of include/uapi/linux/bpf.h."""
_STATS = Path("/proc/sys/kernel/bpf_stats_enabled")


@contextmanager
def bpf_stats() -> Iterator[None]:
    """The kernel counts what programs take, as long as this lasts."""
    before = _STATS.read_text()
    _STATS.write_text("1")
    try:
        yield
    finally:
        _STATS.write_text(before)


def run_times(pid: int, kind: int = 0) -> tuple[int, int]:
    """ns and runs of the BPF programs of a process, or of those of a type: proc(5), fdinfo."""
    programs = {}
    for path in Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            found = dict(re.findall(r"^(\w+):\t(\d+)$", path.read_text(), re.MULTILINE))
        except OSError:
            continue
        if "run_cnt" in found and kind in (0, int(found["prog_type"])):
            programs[found["prog_id"]] = int(found["run_time_ns"]), int(found["run_cnt"])
    return sum(ns for ns, _ in programs.values()), sum(runs for _, runs in programs.values())


def command(name: str) -> list[str]:
    """A whole-host trace with both kinds of stacks that runs until it is interrupted.

    Ours are those beside this Python, or the bench's first argument: an installed one starts faster than an editable.
    """
    if name in (OURS, WALL):
        ours = Path(sys.argv[1] if len(sys.argv) > 1 else Path(sys.executable).with_name(OURS))
        return [str(ours.with_name(name)), "-a", "-o", "-"]
    path = shutil.which(PEER, path=f"{os.environ['PATH']}:/usr/sbin")
    if path is None:
        sys.exit(f"{PEER} is missing: apt-get install libbpf-tools")
    return [path, "3600"]


@contextmanager
def running(name: str) -> Iterator[subprocess.Popen[bytes]]:
    """The tracer, attached; interrupted and waited for at the end, for it to do its reporting elsewhere in time."""
    process = subprocess.Popen(
        ["taskset", "-c", TRACER_CPU, *command(name)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for_link(process.pid)
        time.sleep(0.5)
        yield process
    finally:
        interrupt(process)


def interrupt(process: subprocess.Popen[bytes]) -> None:
    """Ends a tracer as Ctrl-C does; after a minute, it is killed."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_for_link(pid: int, timeout: float = 30) -> None:
    """Returns when the process holds an attached BPF program."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if has_link(pid):
            return
        time.sleep(0.001)
    sys.exit(f"process {pid} attached nothing within {timeout:g} s")


def has_link(pid: int) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        return any(_target(f"{folder}/{fd}") == "anon_inode:bpf_link" for fd in os.listdir(folder))
    except OSError:
        return False


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def pipe_seconds(round_trips: int) -> float:
    """Wall time of one pinned `perf bench sched pipe`: two switches a round trip."""
    arguments = ["taskset", "-c", LOAD_CPU, "perf", "bench", "sched", "pipe", "-l", str(round_trips)]
    output = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    found = re.search(r"Total time:\s+([\d.]+) \[sec\]", output)
    if found is None:
        sys.exit(f"perf bench printed no total time:\n{output}")
    return float(found[1])


def status_kb(pid: int, field: str) -> int:
    """VmRSS or VmHWM of a process, in KB."""
    found = re.search(rf"^{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(found[1]) if found else 0
