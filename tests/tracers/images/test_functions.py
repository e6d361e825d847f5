from __future__ import annotations

import random
import subprocess
from pathlib import Path

from stallscope.tracers.images.elf import BytesSource, ElfError, ElfFile
from stallscope.tracers.images.functions import find_functions, function_names

SOURCE = """
int value = 3;
extern int missing(int);
__attribute__((noinline)) int _inner(int x) { return x + value; }
int inner(int x) __attribute__((alias("_inner")));
static __attribute__((noinline, used)) int hidden(int x) { return missing(x) * 3; }
int outer(int x) { return inner(x) * 2; }
"""


def library(folder: Path, *options: str) -> ElfFile:
    (folder / "x.c").write_text(SOURCE)
    out = folder / "libx.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", *options, "-o", out, folder / "x.c"], check=True)
    return ElfFile(BytesSource(out.read_bytes()))


def test_names_offsets_and_code(tmp_path: Path) -> None:
    elf = library(tmp_path)
    found = find_functions(elf, lambda name: name.endswith(("inner", "outer", "hidden")), 8)
    assert [function.name for function in found if function.name != "hidden"] == ["inner", "outer"]
    data = (tmp_path / "libx.so").read_bytes()
    for function in found:
        assert function.code == data[function.offset : function.offset + 8]
    listed = subprocess.run(["nm", tmp_path / "libx.so"], capture_output=True, text=True, check=True).stdout
    addresses = {name: int(value, 16) for value, _, name in (x.split() for x in listed.splitlines() if x[0] != " ")}
    (text,) = [s for s in elf.segments if s.type == 1 and s.flags & 1]
    assert {f.name: f.offset + text.vaddr - text.offset for f in found} == {
        name: addresses[name] for name in ("inner", "outer", "hidden")
    }


def test_only_functions_that_are_defined(tmp_path: Path) -> None:
    names = function_names(library(tmp_path))
    assert {"_inner", "inner", "outer", "hidden"} <= set(names)
    assert "missing" not in names
    assert "value" not in names


def test_a_stripped_library_has_what_it_exports(tmp_path: Path) -> None:
    names = function_names(library(tmp_path, "-s"))
    assert {"inner", "outer"} <= set(names)
    assert "hidden" not in names


def test_only_what_is_exported(tmp_path: Path) -> None:
    found = find_functions(library(tmp_path), lambda name: True, 0, exported=True)
    names = {function.name for function in found}
    assert "outer" in names
    assert "hidden" not in names


def test_damaged_files_end_in_elf_errors(tmp_path: Path) -> None:
    library(tmp_path)
    whole, chance = (tmp_path / "libx.so").read_bytes(), random.Random(1)
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(20):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            find_functions(ElfFile(BytesSource(bytes(data))), lambda _: True, 16)
        except ElfError:
            continue
