from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from stallscope.tracers.images import variables
from stallscope.tracers.images.elf import SHT_DYNSYM, SHT_SYMTAB, ElfFile, FileSource, TooMuch
from stallscope.tracers.images.variables import variables_named

CODE = "int first = 1, second[4]; static int hidden = 3; int function(void) { return hidden++; } extern int other;"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("variables")
    source, made = folder / "a.c", folder / "a.so"
    source.write_text(CODE)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(made), str(source)], check=True)
    return made


def found(path: Path, *names: bytes, kinds: tuple[int, ...] = (SHT_DYNSYM,)) -> dict[bytes, int]:
    fd = os.open(path, os.O_RDONLY)
    try:
        return variables_named(ElfFile(FileSource(fd)), {*names}, kinds)
    finally:
        os.close(fd)


def test_variables_are_where_the_linker_has_put_them(library: Path) -> None:
    nm = subprocess.run(["nm", "-D", str(library)], capture_output=True, text=True, check=True).stdout
    told = {line.split()[2]: int(line.split()[0], 16) for line in nm.splitlines() if len(line.split()) == 3}
    assert found(library, b"first", b"second") == {b"first": told["first"], b"second": told["second"]}


def test_functions_and_what_is_only_used_are_none(library: Path) -> None:
    assert found(library, b"function", b"other", b"irst", b"nothing") == {}


def test_local_ones_are_in_the_other_table(library: Path) -> None:
    assert found(library, b"hidden") == {}
    assert found(library, b"hidden", kinds=(SHT_SYMTAB,)).keys() == {b"hidden"}


def test_names_are_found_across_pieces(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variables, "_PIECE", 5)
    assert found(library, b"first", b"second").keys() == {b"first", b"second"}


def test_absurd_tables_are_refused(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variables, "_MAX_STRINGS", 5)
    with pytest.raises(TooMuch):
        found(library, b"first")
