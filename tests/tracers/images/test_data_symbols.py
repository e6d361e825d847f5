"""Variables of a program that is compiled here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from stallscope.tracers.images.data_symbols import is_data, variable_at, variable_in
from stallscope.tracers.images.elf import ElfError, ElfFile, FileSource

SOURCE = """
struct table { char before[64]; int lock; } table = { { 1 } };
static int zeroed[4];
__attribute__((alias("zeroed"))) extern int also[4];
int main(void) { return table.lock + zeroed[1]; }
"""


@pytest.fixture
def program(gcc: str, tmp_path: Path) -> ElfFile:
    (tmp_path / "a.c").write_text(SOURCE)
    subprocess.run([gcc, "-o", tmp_path / "a", tmp_path / "a.c"], check=True)
    return ElfFile(FileSource(os.open(tmp_path / "a", os.O_RDONLY)))


def address(program: ElfFile, name: str) -> int:
    assert isinstance(program.source, FileSource)
    fd = program.source.fd
    found = subprocess.check_output(["nm", f"/proc/self/fd/{fd}"], pass_fds=[fd], text=True)
    return next(int(line.split()[0], 16) for line in found.splitlines() if line.endswith(f" {name}"))


def test_variable_and_offset(program: ElfFile) -> None:
    table, zeroed, main = (address(program, name) for name in ("table", "zeroed", "main"))
    assert variable_at(program, table) == ("table", 0)
    assert variable_at(program, table + 64) == ("table", 64)
    assert variable_at(program, table + 68) is None
    assert variable_at(program, zeroed + 4) == ("also", 4)  # exported, unlike the other name
    assert variable_at(program, main) is None
    assert is_data(program, table)
    assert is_data(program, zeroed)
    assert not is_data(program, main)


def test_damaged_table(program: ElfFile, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(_: object) -> None:
        raise ElfError("absurd symbol table")

    monkeypatch.setattr(program, "symbols", damaged)
    assert variable_in(program, 0) is None
