"""Memory, maps, environments and files of processes, read by another process."""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from stallscope.tracers.outside import client, reads
from stallscope.tracers.outside.lookups import SHARED, Place
from stallscope.tracers.outside.reads import Memory, head, heads, is_copy, maps, open_mapped, open_path, pagemap

TRACERS = Path(client.__file__).resolve().parents[1]


@pytest.fixture
def memory() -> Iterator[Memory]:
    made = Memory(os.getpid())
    yield made
    made.close()


def test_memory(memory: Memory) -> None:
    text = ctypes.create_string_buffer(b"12345678", 2 * SHARED)
    at = ctypes.addressof(text)
    assert memory.read(at, 8) == b"12345678"
    assert memory.word(at) == int.from_bytes(b"12345678", "little")
    assert memory.read(at, SHARED + 100) == text.raw[: SHARED + 100]
    assert memory.read_some([(at, 3), (8, 8), (1 << 70, 8), (at + 3, 2)]) == [b"123", b"", b"", b"45"]
    assert memory.read_some([]) == []
    many = memory.read_some([(at, 1)] * 3000)
    assert many == [b"1"] * 3000


@pytest.mark.parametrize("address", [-1, 0, 8, 1 << 63, 1 << 64])
def test_no_memory(memory: Memory, address: int) -> None:
    with pytest.raises(OSError, match=r"memory|address"):
        memory.read(address, 8)


def test_maps_of_code_and_all() -> None:
    code, every = maps(os.getpid(), only_code=True), maps(os.getpid(), only_code=False)
    assert all(line.split(b" ")[1][2:3] == b"x" for line in code.splitlines())
    assert {line for line in every.splitlines() if line.split(b" ")[1][2:3] == b"x"} == set(code.splitlines())
    assert b"[stack]" in every and b"[stack]" not in code


def test_heads_of_several_processes() -> None:
    ours, gone = os.getpid(), 1 << 22
    found = heads([ours, gone], [("cmdline", 4), ("environ", 10), ("nothing", 1)])
    assert found[gone] == [None, None, None]
    with open("/proc/self/cmdline", "rb") as file:
        assert found[ours][0] == file.read(4)
    assert found[ours][2] is None
    assert head(gone, "cmdline", 9) is None


def test_pagemap() -> None:
    area = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    area[0] = 1
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    data = pagemap(os.getpid(), address // mmap.PAGESIZE * 8, 16)
    assert [int.from_bytes(data[i : i + 8], "little") >> 63 for i in (0, 8)] == [1, 0]


def test_paths(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    fd, about = open_path(str(tmp_path / "file"), 0, None)
    assert os.read(fd, 9) == b"x"
    assert (about.size, about.uid, about.inode) == (1, os.geteuid(), (tmp_path / "file").stat().st_ino)
    os.close(fd)
    for path in (str(tmp_path), "/dev/zero", str(tmp_path / "absent"), "a\0b"):
        with pytest.raises(OSError):
            open_path(path, 0, None)


def test_mapped_files(tmp_path: Path) -> None:
    status = os.stat(sys.executable)
    name = os.fsencode(os.path.realpath(sys.executable))
    there = Place(0, 4096, 0, status.st_dev, status.st_ino, name)
    absent = there._replace(name=b"/absent")
    other = there._replace(inode=1)
    fd, *errors = open_mapped(os.getpid(), [there, absent, other], None)
    assert isinstance(fd, int)
    assert os.path.samestat(os.fstat(fd), status)
    assert not os.get_inheritable(fd)
    os.close(fd)
    assert all(isinstance(error, OSError) for error in errors)


def test_files_of_users_file_systems_are_copied(tmp_path: Path, root: None) -> None:
    """An overlay of a user namespace: its user may have put FUSE below it."""
    for name in ("low", "up", "work", "all"):
        (tmp_path / name).mkdir()
    (tmp_path / "low" / "file").write_bytes(b"content" * 1000)
    options = f"lowerdir={tmp_path}/low,upperdir={tmp_path}/up,workdir={tmp_path}/work"
    mount = f"mount -t overlay overlay -o {options} {tmp_path}/all && echo ready && exec sleep 60"
    with subprocess.Popen(["unshare", "-Urm", "sh", "-c", mount], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout and process.stdout.readline() == "ready\n"
            where = os.open(f"/proc/{process.pid}/root", os.O_PATH)
            fd, about = open_path(f"{tmp_path}/all/file", 0, where, process.pid)
            os.close(where)
            assert is_copy(fd)
            assert os.pread(fd, 1 << 20, 0) == b"content" * 1000
            assert about.size == 7000
            with pytest.raises(OSError):
                os.pwrite(fd, b"x", 0)
            os.close(fd)
        finally:
            process.kill()


def test_copies_have_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads._Copies, "taken", reads._MOST_COPIES)
    assert reads._room() == reads._MOST_COPY, "those that were closed count no more"
    fd = os.memfd_create("stallscope", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, reads._MOST_COPIES)
    import fcntl

    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    monkeypatch.setattr(reads._Copies, "taken", reads._MOST_COPIES)
    assert reads._room() == 0
    os.close(fd)


def test_nothing_else_reads_other_processes() -> None:
    """Reads have a deadline only there: /proc/PID/stat, status, comm and the links ask no file system."""
    name = r"(mem|maps|environ|cmdline|map_files|smaps|smaps_rollup|numa_maps|pagemap|auxv)\b"
    pattern = re.compile(rf"/proc/\{{[^}}]*\}}/(task/\{{[^}}]*\}}/)?{name}|PROC /.*\"{name}|_read\([^)]*\"{name}")
    found = [
        f"{path.relative_to(TRACERS)}: {line.strip()}"
        for path in TRACERS.rglob("*.py")
        if path.parent.name != "outside"
        for line in path.read_text().splitlines()
        if pattern.search(line)
    ]
    assert found == []
