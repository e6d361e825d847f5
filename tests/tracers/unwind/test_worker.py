"""The process that compiles, and what it does for a file: here in our process, in test_pool.py in one of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from stallscope.tracers.images.elf import ElfFile, FileSource
from stallscope.tracers.unwind import worker
from stallscope.tracers.unwind.cache import Entry, TableCache, decode
from stallscope.tracers.unwind.compiler import compile_table
from stallscope.tracers.unwind.rows import UnwindTable
from stallscope.tracers.unwind.sections import find_sections

Build = Callable[..., Path]
CODE = ".text\nf:\n.cfi_startproc\nnop\n.cfi_def_cfa_offset 16\nnop\n.cfi_endproc\n"


@pytest.fixture
def library(build: Build) -> Path:
    return build(CODE)


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[TableCache]:
    made = TableCache(str(tmp_path / "cache"))
    yield made
    made.close()


def ask(path: Path, cache: TableCache) -> tuple[str, str, UnwindTable | None]:
    """(problem, why it is not kept, table)."""
    fd = os.open(path, os.O_RDONLY)
    try:
        reply = worker.answer(fd, cache)
        problem, uncached = json.loads(reply.text)
        return problem, uncached, read(reply.fd, path)
    finally:
        os.close(fd)


def read(memory: int, path: Path) -> UnwindTable | None:
    if memory < 0:
        return None
    with open(memory, "rb") as file:
        file.seek(0)
        return decode(file.read(), entry_of(path).digest)


def entry_of(path: Path) -> Entry:
    with path.open("rb") as file:
        elf = ElfFile(FileSource(file.fileno()))
        return TableCache("/dev/null/none").entry(elf, find_sections(elf))


def test_the_table_comes_back_and_is_kept(library: Path, cache: TableCache, tmp_path: Path) -> None:
    with library.open("rb") as file:
        expected = compile_table(ElfFile(FileSource(file.fileno())))
    for hits in (0, 1):
        problem, uncached, table = ask(library, cache)
        assert (problem, uncached, cache.hits) == ("", "", hits)
        assert table is not None
        assert np.array_equal(table.rows, expected.rows)
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".rows"]


def test_a_table_that_cannot_be_kept_comes_back_all_the_same(library: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    problem, uncached, table = ask(library, TableCache(str(tmp_path / "file" / "cache")))
    assert problem == ""
    assert table is not None
    assert uncached == "no cache: File exists"


def test_what_has_no_table_has_a_reason(tmp_path: Path, cache: TableCache) -> None:
    (tmp_path / "text").write_text("text")
    assert ask(tmp_path / "text", cache)[0] == "truncated, or offsets beyond its end"
    (tmp_path / "long").write_text("text" * 100)
    assert ask(tmp_path / "long", cache)[0] == "not an ELF file"


@pytest.mark.parametrize(
    ("error", "reason"), [(MemoryError(), "not enough memory"), (RuntimeError("a defect"), "RuntimeError: a defect")]
)
def test_what_goes_wrong_costs_one_file(
    error: Exception, reason: str, library: Path, cache: TableCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(worker, "compile_sections", broken)
        assert ask(library, cache) == (reason, "", None)
    assert ask(library, cache)[2] is not None


def test_two_at_once_compile_once(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one waits, and finds what the first one has made."""
    gate, compiled = threading.Event(), []
    compile_sections = worker.compile_sections

    def slow(elf: ElfFile, sections: object) -> UnwindTable:
        compiled.append(threading.current_thread().name)
        gate.wait(60)
        return compile_sections(elf, sections)  # type: ignore[arg-type]

    monkeypatch.setattr(worker, "compile_sections", slow)
    answers: list[tuple[str, str, UnwindTable | None]] = []
    threads = [
        threading.Thread(target=lambda: answers.append(ask(library, TableCache(str(tmp_path / "cache")))))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    while not compiled:
        pass
    gate.set()
    for thread in threads:
        thread.join()
    assert len(compiled) == 1
    assert [answer[:2] for answer in answers] == [("", "")] * 3
    assert all(answer[2] is not None for answer in answers)
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".rows"]


def test_it_serves_until_the_other_end_is_closed(library: Path, cache: TableCache) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    thread = threading.Thread(target=worker.serve, args=(theirs, cache))
    before = resource_limit()
    thread.start()
    try:
        with library.open("rb") as file:
            for _ in range(2):
                socket.send_fds(ours, [b"0"], [file.fileno()])
                text, fds, _, _ = socket.recv_fds(ours, 1 << 14, 1)
                assert json.loads(text) == ["", ""]
                assert read(fds[0], library) is not None
    finally:
        ours.close()
        thread.join(60)
        theirs.close()
        restore(before)
    assert not thread.is_alive()


def resource_limit() -> tuple[int, int]:
    return worker.resource.getrlimit(worker.resource.RLIMIT_CPU)


def restore(limits: tuple[int, int]) -> None:
    worker.resource.setrlimit(worker.resource.RLIMIT_CPU, limits)


def test_it_takes_less_than_others(tmp_path: Path) -> None:
    """The worker takes less of the disk, of memory, and at the hands of the kernel when memory is short."""
    code = (
        "import resource, subprocess, os; from stallscope.tracers.unwind import worker; worker._be_modest();"
        "print(resource.getrlimit(resource.RLIMIT_DATA)[0], resource.getrlimit(resource.RLIMIT_CORE)[0]);"
        "print(open('/proc/self/oom_score_adj').read().strip());"
        "print(open('/proc/self/comm').read().strip());"
        "print(subprocess.check_output(['ionice', '-p', str(os.getpid())], text=True).strip())"
    )
    done = subprocess.run([worker.sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{worker.MEMORY} 0", "1000", "unwind tables", "idle"]
