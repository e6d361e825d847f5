"""`trace-doctor --prepare`: compiles unwind tables ahead of traces, for images and for hosts."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ....converters.base.errors import StallscopeError
from ....converters.base.text import printable
from ....converters.base.units import plural
from ...base import descriptors, procfs
from ...base.programs import find_program, programs
from ...images.elf import ElfError, ElfFile, FileSource
from ...images.files import HOST
from ...images.needed import needed
from ...symbols.objects import ObjectFile
from ...symbols.process import ProcessSpaces
from ...unwind.cache import MAX_BYTES, TableCache
from ...unwind.compiling import Compiling, Request, State
from ...unwind.rows import ROW_SIZE
from .preparing import line

_AT_ONCE = 64
"""Maximum number of files open at the same time."""
_MAX_FILES = 100_000
"""Maximum in a folder and those below it."""
_STEP = 0.1
"""Seconds between two updates of the progress."""


class _Candidate(NamedTuple):
    """A file; already open if a process has it mapped."""

    path: str
    mapped: ObjectFile | None = None


@dataclass(eq=False)
class _File(Request):
    fd: int = -1
    """Descriptor of the file, which this program closes; -1: none."""


@dataclass
class Prepared:
    """The result. ``rows``: of all tables, 8 bytes each."""

    folder: str
    compiled: int = 0
    there: int = 0
    """Found in the cache."""
    without: Counter[str] = field(default_factory=Counter)
    """Files without a table, by reason."""
    rows: int = 0
    seconds: float = 0.0
    uncached: str = ""
    refused: int = 0
    """Files that were left out because too many were open."""

    def summary(self) -> str:
        """One line."""
        total = self.compiled + self.there + self.without.total()
        parts = f"{self.compiled:,} compiled, {self.there:,} were there already"
        if self.without:
            parts += f", {self.without.total():,} have no table"
        size = self.rows * ROW_SIZE / 1e6
        where = printable(self.folder)
        return f"{plural(total, 'file')}: {parts}; {self.rows:,} rows, {size:.1f} MB in {where}; {self.seconds:.1f} s"

    def check(self) -> None:
        """StallscopeError when the next trace would have to compile them again."""
        if self.uncached:
            raise StallscopeError(
                f"the tables cannot be kept in {self.folder}: {self.uncached}",
                "make room there, or name another folder with STALLSCOPE_CACHE=/path for this and for the tracers",
            )
        if self.refused:
            few = f"only {descriptors.limit():,} files may be open at a time"
            raise StallscopeError(f"{few}: {self.refused:,} were left out", descriptors.REMEDY)
        if self.rows * ROW_SIZE > MAX_BYTES:
            raise StallscopeError(
                f"{self.folder} holds {MAX_BYTES >> 20} MB at most: some of the tables have left again",
                "prepare fewer files: those of the processes that are to be traced",
            )


def prepare(what: Sequence[str], show: Callable[[str], None]) -> Prepared:
    """Compiles what is not in the cache. ``what``: process ids, programs, libraries, folders; empty: all processes.

    StallscopeError when one of them does not exist.
    """
    begin = time.monotonic()
    spaces = ProcessSpaces()
    candidates = list(_candidates(what, spaces))
    cache = TableCache()
    prepared = Prepared(cache.folder)
    compiling: Compiling[_File, int] = Compiling(cache, lambda table: len(table.rows))
    try:
        _compile(candidates, compiling, prepared, show)
    finally:
        compiling.close()
        spaces.close()
    prepared.refused = spaces.descriptors.refused
    prepared.uncached = compiling.uncached
    prepared.seconds = time.monotonic() - begin
    return prepared


def _compile(
    candidates: list[_Candidate], compiling: Compiling[_File, int], prepared: Prepared, show: Callable[[str], None]
) -> None:
    done = asked = 0
    known: set[tuple[int, int]] = set()

    def drain(until: int) -> int:
        finished = 0
        while asked - done - finished > until:
            state = compiling.state
            if state.at_work:
                show(line(State(len(candidates), done + finished, state.at_work)))
            compiling.wait(_STEP)
            compiling.heard()
            while (found := compiling.take()) is not None:
                _count(*found, prepared)
                finished += 1
        return finished

    for candidate in candidates:
        file = _open(candidate, known, prepared)
        if file is not None:
            compiling.put(file, urgent=False)
        else:
            done += 1
        asked += 1
        done += drain(_AT_ONCE)
    done += drain(0)


def _count(file: _File, found: int | str, prepared: Prepared) -> None:
    if file.fd >= 0:
        os.close(file.fd)
    if isinstance(found, str):
        prepared.without[found] += 1
        return
    prepared.rows += found
    prepared.compiled += file.was_compiled
    prepared.there += not file.was_compiled


def _open(candidate: _Candidate, known: set[tuple[int, int]], prepared: Prepared) -> _File | None:
    """None if there is nothing to compile; counted unless the file is already known."""
    fd = -1
    try:
        if candidate.mapped is not None:
            elf = candidate.mapped.elf()
            if elf is None:
                prepared.without[candidate.mapped.problem] += 1
                return None
        else:
            fd = HOST.open_regular(candidate.path)
            elf = ElfFile(FileSource(fd))
        status = os.fstat(elf.source.fd) if isinstance(elf.source, FileSource) else None
        identity = (status.st_dev, status.st_ino) if status else (-1, -1)
        if identity not in known:
            known.add(identity)
            return _File(elf, candidate.path, fd=fd)
    except (OSError, ValueError, ElfError) as error:
        prepared.without[str(error)] += 1
    if fd >= 0:
        os.close(fd)
    return None


def _candidates(what: Sequence[str], spaces: ProcessSpaces) -> Iterator[_Candidate]:
    if not what:
        yield from _of_processes([pid for pid in procfs.pids() if pid != os.getpid()], spaces)
    for each in what:
        if os.path.isdir(each):
            yield from _of_folder(each)
        elif each.isascii() and each.isdigit() and not os.path.exists(each):
            if not procfs.state(int(each)):
                raise StallscopeError(f"there is no process {each}", "see `ps -e`")
            yield from _of_processes([int(each)], spaces)
        elif os.path.isfile(each) or find_program(each, os.environ):
            yield from _of_program(each)
        else:
            raise StallscopeError(f"there is no file, program or process {each}", "give process ids or paths")


def _of_processes(pids: Sequence[int], spaces: ProcessSpaces) -> list[_Candidate]:
    """Files that most of them map come first."""
    users: Counter[tuple[int, int] | str] = Counter()
    mapped: dict[tuple[int, int] | str, _Candidate] = {}
    for pid in pids:
        process = spaces.adopt(pid)
        for mapping in process.space if process else ():
            file = spaces.object_of(mapping)
            if file is not None:
                users[mapping.key] += 1
                mapped[mapping.key] = _Candidate(mapping.file_path, file)
    return [mapped[key] for key, _ in users.most_common()]


def _of_program(name: str) -> Iterator[_Candidate]:
    begun = [program.path for program in programs([name], os.environ)]
    for path in begun or [name]:
        for file in needed(path, os.environ, with_modules=True) or [path]:
            yield _Candidate(file)


def _of_folder(folder: str) -> Iterator[_Candidate]:
    """Programs and libraries in it and below it; links are not followed."""
    left = _MAX_FILES
    for current, _, names in os.walk(folder):
        for name in names:
            left -= 1
            if left < 0:
                return
            path = os.path.join(current, name)
            if not os.path.islink(path) and _begins_as_elf(path):
                yield _Candidate(path)


def _begins_as_elf(path: str) -> bool:
    try:
        fd = HOST.open_regular(path)
    except (OSError, ValueError):
        return False
    try:
        # Magic; 64 bits; e_type of programs and libraries: elf(5).
        head = os.read(fd, 18)
        return head[:4] == b"\x7fELF" and head[4:5] == b"\2" and head[16:18] in (b"\2\0", b"\3\0")
    except OSError:
        return False
    finally:
        os.close(fd)
