"""Files that are interpreters."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pythons import interpreters, running, runtime_in
from stallscope.tracers.cpython.runtime import Runtime, address_of, find_runtime, may_be_interpreter
from stallscope.tracers.images.elf import ElfFile, FileSource
from stallscope.tracers.images.maps import Mapping


def runtime_of(path: str, name: str = "") -> Runtime | None:
    fd = os.open(path, os.O_RDONLY)
    try:
        return find_runtime(ElfFile(FileSource(fd)), name or path)
    finally:
        os.close(fd)


@pytest.mark.parametrize("version", list(interpreters()))
def test_interpreters(version: str) -> None:
    with running(interpreters()[version], "print(0)") as (pid, _):
        mapping, runtime, _ = runtime_in(pid)
    assert runtime.version == tuple(map(int, version.split(".")[:2]))
    if runtime.version >= (3, 11):
        assert runtime_of(mapping.path, "/opt/of-another-name") == runtime
    else:
        unknown = runtime_of(mapping.path, "/opt/of-another-name")
        assert unknown and unknown.version == (0, 0)


def test_others() -> None:
    assert runtime_of("/bin/ls") is None
    assert runtime_of("/lib/x86_64-linux-gnu/libc.so.6") is None


def test_names() -> None:
    def mapping(path: str) -> Mapping:
        return Mapping(0, 4096, path=path, dev=1, inode=1)

    for path in ("/usr/bin/python3.11", "/opt/lib/libpython3.8.so.1.0", "/x/MyPython (deleted)", "/opt/simulator"):
        assert may_be_interpreter(mapping(path))
    for path in ("/usr/lib/libc.so.6", "/usr/lib/python3/foo.so", "[heap]", ""):
        assert not may_be_interpreter(mapping(path))


def test_address(tmp_path: Path) -> None:
    fd = os.open("/bin/ls", os.O_RDONLY)
    try:
        elf = ElfFile(FileSource(fd))
        code = next(segment for segment in elf.segments if segment.type == 1 and segment.flags & 1)
        mapping = Mapping(0x5500_0000_0000, 0x5500_0001_0000, code.offset, "/bin/ls")
        assert address_of(elf, mapping, code.vaddr + 0x123) == 0x5500_0000_0123
        assert address_of(elf, mapping._replace(offset=1 << 40), 0) is None
    finally:
        os.close(fd)
