"""One session: a process that runs changed inputs of one target for a while, and keeps those that reach new code."""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import fuzz_coverage
import fuzz_mutators
from fuzz_limits import CPU_SECONDS, MEMORY, Current, run
from fuzz_target import Target

CORPUS = Path(__file__).with_name("corpus")
_LARGEST_KEPT = 64 << 10
"""Bytes of an input that is kept."""
_MOST_KEPT = 4000
_SLOW = 0.5
"""Seconds; slower inputs are changed further less often."""


@dataclass
class Report:
    """Report of what a session did."""

    executions: int = 0
    read: int = 0
    kept: int = 0
    """Inputs that reached new code."""
    slowest: float = 0.0
    largest: int = 0
    """Bytes that the process grew by, at most."""
    seconds: float = 0.0
    findings: dict[str, int] = field(default_factory=dict)


class Folders(NamedTuple):
    """Folders in which a target's inputs are kept while it is fuzzed."""

    kept: Path
    findings: Path
    report: Path

    @classmethod
    def of(cls, work: Path, target: str) -> Folders:
        """Made if they are not there."""
        made = cls(work / target / "kept", work / target / "findings", work / target / "report.json")
        for folder in made[:2]:
            folder.mkdir(parents=True, exist_ok=True)
        return made


def corpus_files(target: str) -> list[tuple[str, bytes]]:
    """(name, content) of a target's inputs in the corpus: those that once failed, and those that reach much code."""
    found = [(path.name, path.read_bytes()) for path in sorted((CORPUS / target).glob("*"))]
    packed = CORPUS / f"{target}.zip"
    if packed.exists():
        with ZipFile(packed) as archive:
            found += [(name, archive.read(name)) for name in archive.namelist()]
    return found


def write_corpus(target: str, inputs: Sequence[bytes]) -> None:
    """Writes the inputs that reach much code."""
    CORPUS.mkdir(exist_ok=True)
    with ZipFile(CORPUS / f"{target}.zip", "w", ZIP_DEFLATED) as archive:
        for data in sorted(inputs, key=name_of):
            archive.writestr(ZipInfo(name_of(data)), data, ZIP_DEFLATED)


def name_of(data: bytes) -> str:
    """The name of an input's file."""
    return hashlib.sha256(data).hexdigest()[:16]


class Session:
    """The state of the process."""

    def __init__(self, target: Target, folders: Folders, seed: str) -> None:
        self._target, self._folders = target, folders
        self._chance = random.Random(seed)
        self._pool: list[bytes] = []
        self._seen = 0
        self._slowest: bytes = b""
        self.report = Report()

    def go(self, current: Current, seconds: float) -> None:
        """Runs for so long."""
        begin = time.monotonic()
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seeds = list(self._target.seeds())
        kept = [path.read_bytes() for path in sorted(self._folders.kept.iterdir())]
        for data in (*seeds, *(data for _, data in corpus_files(self._target.name)), *kept):
            self._one(data, current, is_new=False)
        written = begin
        for data in self._inputs():
            self._one(data, current, is_new=True)
            now = time.monotonic()
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) << 10
            if now > written + 1:
                written = now
                self._write(now - begin)
            # What earlier inputs have left in memory is not the next one's.
            if now > begin + seconds or grown > MEMORY // 2:
                break
        self._write(time.monotonic() - begin)

    def _write(self, seconds: float) -> None:
        self.report.seconds = seconds
        whole = self._folders.report.with_suffix(f".{os.getpid()}")
        whole.write_text(json.dumps(asdict(self.report)))
        whole.replace(self._folders.report)

    def _inputs(self) -> Iterator[bytes]:
        while True:
            # The newest have been tried the least.
            newest = self._pool[-20:] if self._chance.random() < 0.4 else self._pool
            data = self._chance.choice(newest) if newest else b""
            if self._slowest and self._chance.random() < 0.02:
                data = self._slowest
            yield self._target.mutate(data, self._chance, self._pool or [b""])[: fuzz_mutators.MOST]

    def _one(self, data: bytes, current: Current, *, is_new: bool) -> None:
        fuzz_coverage.clear()
        found = run(self._target, data, current)
        report = self.report
        report.executions += is_new
        report.read += found.outcome == "read"
        report.largest = max(report.largest, found.grown)
        if found.seconds > report.slowest:
            report.slowest = found.seconds
            if len(data) < _LARGEST_KEPT and found.seconds < CPU_SECONDS / 4:
                self._slowest = data
            if found.seconds > _SLOW:
                self._folders.report.with_name("slowest").write_bytes(data)
        if found.is_wrong:
            self._keep_finding(found.outcome, data, found.details)
            return
        taken = fuzz_coverage.taken()
        if taken & ~self._seen or not is_new:
            self._seen |= taken
            if len(self._pool) < _MOST_KEPT and len(data) <= 4 * _LARGEST_KEPT and found.seconds < _SLOW:
                self._pool.append(data)
            if is_new:
                report.kept += 1
                if len(data) <= _LARGEST_KEPT:
                    (self._folders.kept / name_of(data)).write_bytes(data)

    def _keep_finding(self, what: str, data: bytes, details: str) -> None:
        count = self.report.findings.get(what, 0)
        self.report.findings[what] = count + 1
        smallest = self._folders.findings / f"{hashlib.sha256(what.encode()).hexdigest()[:12]}"
        if count < 200 and (not smallest.exists() or smallest.stat().st_size > len(data)):
            smallest.write_bytes(data)
            smallest.with_suffix(".txt").write_text(f"{what}\n{details}", errors="backslashreplace")


def chosen(target: Target, inputs: Sequence[bytes], most: int) -> list[bytes]:
    """Inputs that together reach the same code, of ``most`` bytes at most; the smallest first. Runs them."""
    current, seen, found, size = Current(), 0, [], 0
    for data in target.seeds():
        fuzz_coverage.clear()
        run(target, data, current)
        seen |= fuzz_coverage.taken()
    for data in sorted(set(inputs), key=lambda data: (len(data), data)):
        fuzz_coverage.clear()
        result = run(target, data, current)
        taken = fuzz_coverage.taken()
        if taken & ~seen and not result.is_wrong and result.seconds < 0.2 and size + len(data) <= most:
            seen |= taken
            size += len(data)
            found.append(data)
    return found
