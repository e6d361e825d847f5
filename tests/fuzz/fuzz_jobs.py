"""Sessions of several targets at a time, one on each core, and the table of what they have found."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import pkgutil
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from fuzz_limits import Child, Current, died_of, fails, minimised, run
from fuzz_session import Folders, Report, Session, chosen, corpus_files, write_corpus
from fuzz_target import Target
from fuzz_targets import TARGETS

_SLICE = 60.0
"""Maximum seconds of a process: then another one goes on."""
_PACKED = 96 << 10
"""Bytes of a target's corpus, before they are packed."""


class _Job:
    """A target, and how long it still runs."""

    def __init__(self, target: Target, seconds: float, folders: Folders, seed: str) -> None:
        self.target, self.left, self.folders, self.seed = target, seconds, folders, seed
        self.total = Report()
        self.number = 0
        self._child: Child | None = None
        self._began = 0.0

    def start(self) -> int:
        """Starts the next process; returns its pid."""
        self.number += 1
        self.folders.report.unlink(missing_ok=True)
        session = Session(self.target, self.folders, f"{self.seed}/{self.target.name}/{self.number}")
        seconds = min(self.left, _SLICE)
        self._began = time.monotonic()
        self._child = Child(lambda current: session.go(current, seconds))
        return self._child.pid

    def ended(self, status: int) -> None:
        """The process has ended with this status of waitpid(2)."""
        assert self._child is not None
        took = time.monotonic() - self._began
        self.left -= max(took, 0.2)
        self._add(took)
        if what := died_of(status):
            data = self._child.current.get()
            self.total.findings[what] = self.total.findings.get(what, 0) + 1
            name = hashlib.sha256((what + str(len(data) // 2048)).encode()).hexdigest()[:12]
            (self.folders.findings / name).write_bytes(data)
            (self.folders.findings / f"{name}.txt").write_text(what)
        self._child = None

    def _add(self, took: float) -> None:
        try:
            found = Report(**json.loads(self.folders.report.read_text()))
        except (OSError, ValueError):
            found = Report()
        total = self.total
        total.executions += found.executions
        total.read += found.read
        total.kept += found.kept
        total.slowest = max(total.slowest, found.slowest)
        total.largest = max(total.largest, found.largest)
        total.seconds += took
        for what, count in found.findings.items():
            total.findings[what] = total.findings.get(what, 0) + count


def fuzz(names: list[str], seconds: float, jobs: int, work: Path, seed: str) -> int:
    """Returns the number of findings."""
    shares = sum(TARGETS[name].share for name in names)
    import_all()
    for name in names:
        TARGETS[name].seeds()  # what they compile is compiled once
    waiting = [
        _Job(TARGETS[name], jobs * seconds * TARGETS[name].share / shares, Folders.of(work, name), seed)
        for name in names
    ]
    waiting.sort(key=lambda job: -job.left)
    count = 0
    print(f"{len(names)} targets, {seconds:.0f} s on {jobs} cores, seed {seed}", flush=True)
    began = time.monotonic()
    print(f"{'target':>20}{'seconds':>9}{'inputs':>11}{'read':>10}{'new code':>9}{'slowest':>9}{'memory':>9} findings")
    totals = Report()
    for job in _all(waiting, jobs):
        found = job.total
        print(_row(job.target.name, found), flush=True)
        for what, times in found.findings.items():
            print(f"{'':>22}{what} ({times}×)", flush=True)
        count += len(found.findings)
        totals.executions += found.executions
        totals.read += found.read
        totals.kept += found.kept
        totals.seconds += found.seconds
        totals.slowest, totals.largest = max(totals.slowest, found.slowest), max(totals.largest, found.largest)
    print(_row("all", totals) + f"{count}; {time.monotonic() - began:.0f} s by the clock", flush=True)
    return count


def import_all() -> None:
    """All modules of stallscope: what a parser imports is not its inputs' time and memory, nor changed meanwhile."""
    for room in ("converters", "tracers"):
        for found in pkgutil.walk_packages([str(Path(__file__).parents[2] / room)], f"stallscope.{room}."):
            importlib.import_module(found.name)


def _row(name: str, found: Report) -> str:
    numbers = f"{found.seconds:8.0f} {found.executions:10,} {found.read:9,} {found.kept:8,} {found.slowest:6.2f} s"
    return f"{name:>20} {numbers} {found.largest >> 20:4} MiB {len(found.findings) or ''} "


def _all(waiting: list[_Job], jobs: int) -> Iterator[_Job]:
    """The jobs as they end."""
    running: dict[int, _Job] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            job = waiting.pop(0)
            running[job.start()] = job
        pid, status = os.waitpid(-1, 0)
        job = running.pop(pid, None)
        if job is None:
            continue
        job.ended(status)
        if job.left > 1:
            running[job.start()] = job
        else:
            _minimise(job)
            yield job


def _minimise(job: _Job) -> None:
    for path in sorted(job.folders.findings.glob("*")):
        done = path.with_suffix(".min")
        if path.suffix or done.exists():
            continue
        done.write_bytes(minimised(job.target, path.read_bytes()))


def pack(names: list[str], work: Path) -> None:
    """Writes the corpus of each target anew."""
    for name in names:
        child = Child(partial(_pack, TARGETS[name], Folders.of(work, name)))
        print(name, child.wait() or "packed", flush=True)


def _pack(target: Target, folders: Folders, _: Current) -> None:
    inputs = [data for _, data in corpus_files(target.name)]
    inputs += [path.read_bytes() for path in folders.kept.iterdir()]
    write_corpus(target.name, chosen(target, inputs, _PACKED))


def replay(target: Target, path: Path) -> int:
    """1 if something is wrong after this input."""

    def act(current: Current) -> None:
        found = run(target, path.read_bytes(), current)
        print(f"{found.outcome}: {found.seconds:.2f} s, {found.grown >> 20} MiB\n{found.details}", flush=True)

    what = Child(act).wait() or fails(target, path.read_bytes())
    print(what or "nothing is wrong")
    return bool(what)
