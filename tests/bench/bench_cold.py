"""The first trace, with no unwind tables in the cache, and the second: when it begins, what share of the off-CPU time
in user code is in complete stacks, and how much CPU time the tracer and its helpers take while it runs.

    bench_cold.py [TRACE_OFFCPU] [SECONDS]

TORCH_PYTHON=/path/to/python with PyTorch adds a process that trains. Another version of the command is compared by
naming it; it has to know STALLSCOPE_CACHE.
"""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from stallscope.converters import pprof
from stallscope.converters.phrases.remarks import worded

HERE = Path(__file__).resolve().parent
WORKLOADS = HERE.parents[1] / "build" / "workloads"
PYTHON_THREADS = ["/usr/bin/python3", str(HERE.parent / "workloads" / "python_threads.py")]
TORCH = r"""
import queue, sys, threading, time, torch
torch.set_num_threads(2)
end = time.monotonic() + float(sys.argv[1])
jobs = queue.Queue(4)
def load():
    while time.monotonic() < end:
        jobs.put(torch.rand(256, 256))
        time.sleep(0.003)
    jobs.put(None)
def work():
    while (x := jobs.get()) is not None:
        torch.topk((x @ x).relu().sort().values.flatten(), 10)
        time.sleep(0.001)
def train():
    model = torch.nn.Linear(256, 256)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    while time.monotonic() < end:
        optimizer.zero_grad()
        model(torch.rand(64, 256)).square().mean().backward()
        optimizer.step()
        time.sleep(0.002)
threads = [threading.Thread(target=f) for f in (load, work, train)]
for thread in threads: thread.start()
print("ready", flush=True)
for thread in threads: thread.join()
"""
LIFE = 300
"""Seconds that what is traced lives, at most."""


class Result(NamedTuple):
    """``begin``: seconds from the command's start; ``cpu``: seconds while it traced; ``share`` in percent."""

    begin: float
    cpu: float
    share: float
    rest: str


def trace(tracer: str, cache: Path, seconds: float, *scope: str) -> Result:
    """One trace, of ``seconds``, or of a command to its end."""
    output = cache.with_name("out.pb.gz")
    master, slave = pty.openpty()
    started = time.monotonic()
    process = subprocess.Popen(
        [tracer, "-o", str(output), "--force", *scope],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=slave,
        env={**os.environ, "STALLSCOPE_CACHE": str(cache), "TERM": "xterm"},
    )
    os.close(slave)
    said = bytearray()
    while b"tracing " not in said:
        said += _read(master)
        if process.poll() is not None:
            sys.exit(said.decode())
    begun = time.monotonic()
    before = _cpu(process.pid)
    after = before
    while process.poll() is None and (not seconds or time.monotonic() < begun + seconds):
        after = _cpu(process.pid)
        if not seconds and not _children(process.pid, "other"):
            break
        if select.select([master], [], [], 0.02)[0]:
            _read(master)
    while process.poll() is None:
        _read(master)
    os.close(master)
    with output.open("rb") as file:
        comments = worded(pprof.load(file).comments)
    share, rest = 100.0, ""
    for comment in comments:
        if found := re.match(r"([\d.]+)% of the time in user code is in complete stacks; others: (.*)", comment):
            share, rest = float(found[1]), found[2]
    return Result(begun - started, after - before, share, rest)


def _read(master: int) -> bytes:
    try:
        return os.read(master, 1 << 16) if select.select([master], [], [], 0.1)[0] else b""
    except OSError:  # everybody has closed it
        return b""


def _children(pid: int, kind: str) -> list[int]:
    """``kind``: "ours" (they compile tables) or "other" (the traced command)."""
    found = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    except OSError:
        return []
    return [child for child in found if (b"unwind" in _text(child, "cmdline")) == (kind == "ours")]


def _text(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _cpu(pid: int) -> float:
    """Seconds of the tracer and of those that compile for it; proc(5)."""
    ticks = 0
    for each in (pid, *_children(pid, "ours")):
        fields = _text(each, "stat").rpartition(b")")[2].split()
        ticks += int(fields[11]) + int(fields[12]) if len(fields) > 12 else 0
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def target(*command: str) -> Iterator[int]:
    """A process at work, as soon as it says something."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout
        process.stdout.readline()
        time.sleep(1)
        yield process.pid
    finally:
        process.kill()
        process.wait()


def report(name: str, tracer: str, seconds: float, *scope: str) -> None:
    """A first trace and a second one."""
    with tempfile.TemporaryDirectory() as folder:
        for which in ("first", "second"):
            result = trace(tracer, Path(folder) / "cache", seconds, *scope)
            print(
                f"{name:>22} {which:>6}: begins after {result.begin:5.2f} s; {result.cpu:5.2f} s of CPU while it "
                f"traces; {result.share:6.2f} % complete{f' ({result.rest})' if result.rest else ''}",
                flush=True,
            )


def main() -> None:
    tracer = sys.argv[1] if len(sys.argv) > 1 else str(Path(sys.executable).with_name("trace-offcpu"))
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 4.0
    fixed = ("-d", f"{seconds:g}")
    with target(*PYTHON_THREADS, str(1000 * LIFE)) as pid:
        report("-p of python3", tracer, seconds, "-p", str(pid), *fixed)
        report("-a", tracer, seconds, "-a", *fixed)
    if shutil.which(torch := os.environ.get("TORCH_PYTHON", "")):
        with target(torch, "-c", TORCH, str(LIFE)) as pid:
            report("-p of PyTorch", tracer, seconds, "-p", str(pid), *fixed)
    report("-- a C program", tracer, 0, "--", str(WORKLOADS / "call_paths"), "near", "300")
    report("-- a C++ program*", tracer, 0, "--", str(WORKLOADS / "cpp_frames"), "3000")
    report("-- python3 script.py", tracer, 0, "--", *PYTHON_THREADS, "3000")
    print("* one of its threads is deeper than any stack that is walked: about 5 % of the time")


if __name__ == "__main__":
    main()
