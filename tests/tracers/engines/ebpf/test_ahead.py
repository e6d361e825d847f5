from __future__ import annotations

import os
import resource
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.base.descriptors import RESERVE
from stallscope.tracers.engines.ebpf import ahead
from stallscope.tracers.engines.ebpf.ahead import Prepared, prepare
from stallscope.tracers.images.maps import read_maps
from stallscope.tracers.images.needed import needed
from stallscope.tracers.unwind.cache import TableCache


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("STALLSCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has mapped what it will map."""
    child = subprocess.Popen(["sleep", "60"])
    while Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] != "S" or not _has_libc(child.pid):
        time.sleep(0.001)
    yield child
    child.kill()
    child.wait()


def _has_libc(pid: int) -> bool:
    return any("libc.so" in mapping.path for mapping in read_maps(pid))


def silent(_line: str) -> None:
    pass


def rows(folder: Path) -> int:
    return len(list(folder.glob("*.rows")))


def test_a_process(folder: Path, sleeper: subprocess.Popen[bytes]) -> None:
    mapped = {mapping.path for mapping in read_maps(sleeper.pid) if mapping.is_file}
    shown: list[str] = []
    first = prepare([str(sleeper.pid)], shown.append)
    assert (first.compiled, first.there, first.without.total()) == (len(mapped), 0, 0)
    assert rows(folder) == len(mapped) >= 3
    assert first.rows > 10_000
    assert all(line.startswith("compiling unwind tables: ") for line in shown)
    second = prepare([str(sleeper.pid)], silent)
    assert (second.compiled, second.there, second.rows) == (0, len(mapped), first.rows)
    first.check()
    cache = TableCache()
    for path in mapped:
        with open(path, "rb") as file:
            cache.table(ahead.ElfFile(ahead.FileSource(file.fileno())))
    assert (cache.hits, cache.misses) == (len(mapped), 0), "just what a trace looks for"


def test_all_that_runs(folder: Path, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead.procfs, "pids", lambda: iter([sleeper.pid, os.getpid(), 1 << 22]))
    found = prepare([], silent)
    assert found.compiled == len({mapping.path for mapping in read_maps(sleeper.pid) if mapping.is_file})


@pytest.mark.parametrize("how", ["path", "name", "script"])
def test_a_program_with_its_libraries(how: str, folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sleep\n")
    script.chmod(0o755)
    named = {"path": "/bin/sleep", "name": "sleep", "script": str(script)}[how]
    found = prepare([named], silent)
    assert found.compiled == rows(folder) == len(needed("/bin/sleep", {}))


def test_libraries_and_folders_for_an_image(folder: Path, tmp_path: Path) -> None:
    """Links are not followed, what is no program is left out, and what is there twice is compiled once."""
    image = tmp_path / "image"
    (image / "below").mkdir(parents=True)
    library = Path("/lib/x86_64-linux-gnu/libz.so.1").resolve()
    shutil.copy(library, image / "below" / "libz.so")
    os.link(image / "below" / "libz.so", image / "libz-again.so")
    (image / "libm.so").symlink_to("/lib/x86_64-linux-gnu/libm.so.6")
    (image / "loop").symlink_to(image)
    (image / "text").write_text("text")
    (image / "short").write_bytes(b"\x7fELF\x02")
    (image / "broken").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\3\0")
    os.mkfifo(image / "pipe")
    found = prepare([str(image)], silent)
    assert (found.compiled, found.without) == (1, Counter({"truncated, or offsets beyond its end": 1}))
    assert rows(folder) == 1
    again = prepare([str(library)], silent)
    assert again.there == 1, "the same content under another name"
    assert again.compiled == len(needed(str(library), {})) - 1


def _target(fd: int | str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except FileNotFoundError:  # another thread has closed it
        return ""


def test_many_files_are_not_open_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Path("/lib/x86_64-linux-gnu/libdl.so.2").read_bytes()
    (tmp_path / "many").mkdir()
    for i in range(40):
        (tmp_path / "many" / f"lib{i}.so").write_bytes(library)
    monkeypatch.setattr(ahead, "_AT_ONCE", 3)
    most = 0
    count = ahead._count

    def counted(file: ahead._File, found: int | str, prepared: Prepared) -> None:
        nonlocal most
        most = max(most, sum("/many/" in _target(fd) for fd in _fds()))
        count(file, found, prepared)

    monkeypatch.setattr(ahead, "_count", counted)
    before = len(_fds())
    assert prepare([str(tmp_path / "many")], silent).compiled + rows(tmp_path / "cache") >= 2
    assert 1 <= most <= 5
    assert len(_fds()) == before


def _fds() -> list[str]:
    return [fd for fd in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{fd}")]


@pytest.mark.parametrize("name", ["/no/such/file", "4194304", "no-such-program", "\x1b"])
def test_what_is_not_there(name: str, folder: Path) -> None:
    with pytest.raises(StallscopeError) as caught:
        prepare(["/bin/true", name], silent)
    assert name in caught.value.cause
    assert caught.value.remedy
    assert not folder.exists() or rows(folder) == 0


def test_a_file_whose_name_is_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy("/bin/true", "4194304")
    assert prepare(["4194304"], silent).compiled >= 3


def test_summary() -> None:
    found = Prepared("/x/\x1b", 37, 375, Counter({"not an ELF file": 3}), 1_000_000, 21.26)
    assert found.summary() == (
        "415 files: 37 compiled, 375 were there already, 3 have no table; 1,000,000 rows, 8.0 MB in /x/\\x1b; 21.3 s"
    )
    found.check()
    assert Prepared("/x", 1).summary().startswith("1 file: 1 compiled, 0 were there already; 0 rows, 0.0 MB in /x; ")


def test_files_that_cannot_be_open_are_a_failure(folder: Path, sleeper: subprocess.Popen[bytes]) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = len(os.listdir("/proc/self/fd")) + RESERVE + (os.cpu_count() or 1) + 2  # one now, one later
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, before[1]))
    try:
        found = prepare([str(sleeper.pid)], silent)
        with pytest.raises(StallscopeError, match=rf"only {few} files .*: {found.refused} were left out"):
            found.check()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert found.refused == found.without.total() > 0


def test_tables_that_cannot_be_kept_are_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STALLSCOPE_CACHE", str(tmp_path / "file" / "cache"))
    found = prepare(["/bin/true"], silent)
    assert found.compiled >= 3
    with pytest.raises(StallscopeError, match=r"cannot be kept in .*: no cache: File exists"):
        found.check()
    with pytest.raises(StallscopeError, match="holds 256 MB at most"):
        Prepared("/x", rows=40 << 20).check()
