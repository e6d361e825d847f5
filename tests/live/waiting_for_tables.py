"""Messages while unwind tables are compiled, and the processes that compile them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from commands import Tracer, alive
from runner import SYSTEM_PYTHON
from stallscope.converters.model import Profile
from stallscope.converters.phrases.remarks import worded
from stallscope.tracers.images.elf import ElfFile, FileSource
from stallscope.tracers.unwind.cache import TableCache
from stallscope.tracers.unwind.sections import find_sections

LIBC = Path("/lib/x86_64-linux-gnu/libc.so.6")
_BUSY = "import time; end = time.monotonic() + 30\nwhile time.monotonic() < end: pass"

COMPLETE = 95
"""Percent of the off-CPU time in user code: with tables that came too late it was 29 to 84."""
CUT_SHORT = "in stacks cut short: unwind tables were still being compiled; run it again"


def complete(profile: Profile) -> float:
    """Percent of the time in user code that is in complete stacks, as the summary says it."""
    shares = [
        re.match(r"([\d.]+)% of the time in user code is in complete stacks", each) for each in worded(profile.comments)
    ]
    (share,) = [float(found[1]) for found in shares if found] or [100.0]
    return share


def compilers(pid: int) -> list[int]:
    """The processes that compile for a tracer."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += map(int, (task / "children").read_text().split())
    return [child for child in found if alive(child) and _comm(child) == "unwind tables"]


def _comm(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def compiling(tracer: Tracer) -> bool:
    """Whether it says that it waits for the C library."""
    return b", libc.so.6 \xe2\x80\xa6" in tracer._tty


def began(tracer: Tracer) -> bool:
    return b"tracing " in tracer._tty


@contextmanager
def claimed(cache: Path, path: Path = LIBC) -> Iterator[None]:
    """The claim of a file's table: while it is held, the table is not compiled, since somebody else says that he does
    that."""
    tables = TableCache(str(cache))
    with path.open("rb") as file:
        elf = ElfFile(FileSource(file.fileno()))
        entry = tables.entry(elf, find_sections(elf))
    with tables.claim(entry):
        yield
    tables.close()


@contextmanager
def at_work(prefix: Sequence[str]) -> Iterator[None]:
    """A program that never waits, and whose weight is the largest."""
    busy = subprocess.Popen(["nice", "-n", "-20", *prefix, SYSTEM_PYTHON, "-c", _BUSY])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()
