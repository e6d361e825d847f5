"""Places where interpreters free code objects: what the file says, and what forged files cannot say."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from pythons import interpreters, running, runtime_in
from stallscope.tracers.cpython.deallocator import (
    DEALLOCATOR,
    Unproven,
    _dynamic,
    _place,
    deallocator,
    initial_word,
)
from stallscope.tracers.cpython.memory import memory_of
from stallscope.tracers.cpython.runtime import find_runtime
from stallscope.tracers.images.elf import SHT_DYNSYM, ElfError, ElfFile, FileSource

PROGRAM = """
void work(void) {}
extern void elsewhere(void);
struct { long pad[6]; void *mine, *none, *other; } table = {{0}, work, 0, OTHER};
int main(void) { return 0; }
"""
CASES = {
    "fixed": ("-no-pie",),
    "static": ("-static",),
    "pie": ("-pie", "-fPIE"),
    "relr": ("-pie", "-fPIE", "-Wl,-z,pack-relative-relocs"),
    "shared": ("-shared", "-fPIC"),
    "bound": ("-shared", "-fPIC", "-Wl,-Bsymbolic"),
}


@contextmanager
def opened(path: Path) -> Iterator[ElfFile]:
    fd = os.open(path, os.O_RDONLY)
    try:
        yield ElfFile(FileSource(fd))
    finally:
        os.close(fd)


def built(folder: Path, flags: tuple[str, ...], other: str = "0") -> Path:
    source, made = folder / "x.c", folder / "x"
    source.write_text(PROGRAM.replace("OTHER", other))
    subprocess.run([shutil.which("gcc") or "gcc", "-o", made, *flags, source], check=True)
    return made


def symbols_of(path: Path) -> dict[str, int]:
    said = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    return {
        name: int(address, 16) for address, _, name in (line.split() for line in said.splitlines() if line[0] != " ")
    }


@pytest.mark.parametrize("kind", CASES)
def test_words_when_a_program_begins(kind: str, tmp_path: Path) -> None:
    made = built(tmp_path, CASES[kind])
    symbols = symbols_of(made)
    with opened(made) as elf:
        assert initial_word(elf, symbols["table"] + DEALLOCATOR) == symbols["work"]
        assert initial_word(elf, symbols["table"] + DEALLOCATOR + 8) == 0
        vaddr, offset = deallocator(elf, symbols["table"])
        assert vaddr == symbols["work"]
        assert elf.source.read(offset, 8) == elf.code_at(vaddr, 8)
        with pytest.raises(Unproven):  # 0
            deallocator(elf, symbols["table"] + 8)
        with pytest.raises(ElfError):
            initial_word(elf, 1 << 64)


def test_other_files_function(tmp_path: Path) -> None:
    made = built(tmp_path, CASES["shared"], other="elsewhere")
    with opened(made) as elf, pytest.raises(ElfError, match="another file"):
        initial_word(elf, symbols_of(made)["table"] + DEALLOCATOR + 16)


@pytest.mark.parametrize("version", list(interpreters()))
def test_interpreters(version: str) -> None:
    """The file says what the process has."""
    with running(interpreters()[version], "print(0)") as (pid, _):
        mapping, runtime, address = runtime_in(pid)
        bias = address - runtime.vaddr
        with memory_of(pid) as memory:
            has = memory.word(bias + runtime.code_type + DEALLOCATOR)
    with opened(Path(mapping.path)) as elf:
        assert deallocator(elf, runtime.code_type)[0] == has - bias


def forge(path: Path, moved: int) -> None:
    """Makes a copy of an interpreter say another place."""
    with opened(path) as elf:
        runtime = find_runtime(elf, "libpython")
        assert runtime
        vaddr = runtime.code_type + DEALLOCATOR
        at = _place(elf, vaddr, 8)
        (before,) = struct.unpack("<Q", elf.source.read(at, 8))
        tags = _dynamic(elf)
        if size := tags.get(8, 0):
            begin = _place(elf, tags[7], size)
            rows = np.frombuffer(elf.source.read(begin, size), "<u8").reshape(-1, 3)
            for i in np.flatnonzero(rows[:, 0] == vaddr).tolist():
                before, at = int(rows[i, 2]), begin + 24 * i + 16
                if info := int(rows[i, 1]) >> 32:  # a symbol's
                    table = next(row for row in elf.sections if row["type"] == SHT_DYNSYM)
                    at = int(table["offset"]) + info * 24 + 8
                    before = int.from_bytes(elf.source.read(at, 8), "little")
    with path.open("r+b") as file:
        file.seek(at)
        file.write(struct.pack("<Q", (before + moved) % (1 << 64)))


@pytest.mark.parametrize("version", list(interpreters()))
def test_forged(version: str, tmp_path: Path) -> None:
    with running(interpreters()[version], "print(0)") as (pid, _):
        path = runtime_in(pid)[0].path
    for moved in (1, 4, -1, 1 << 40, -(1 << 20)):
        copy = Path(shutil.copy(path, tmp_path / f"libpython{moved}"))
        with opened(copy) as elf:
            runtime = find_runtime(elf, copy.name)
            assert runtime
            right, _ = deallocator(elf, runtime.code_type)
        forge(copy, moved)
        with opened(copy) as elf, pytest.raises(Unproven):
            raise AssertionError((right, deallocator(elf, runtime.code_type)))


def test_stripped_of_unwind_rules(tmp_path: Path) -> None:
    made = built(tmp_path, CASES["pie"])
    symbols = symbols_of(made)
    subprocess.run(["objcopy", "--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr", made], check=True)
    with opened(made) as elf, pytest.raises(Unproven):
        deallocator(elf, symbols["table"])
