"""Go's own table of functions: forged ones of each layout, and those of programs that Go has built."""

from __future__ import annotations

import random
import struct
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from go_tables import DATA, GO_18, GO_20, LAYOUTS, TABLE, TEXT, go_program, go_table, module_data
from stallscope.tracers.images.elf import BytesSource, ElfError, ElfFile, TooMuch
from stallscope.tracers.images.functions import is_of_go
from stallscope.tracers.images.go_table import GoFunctions, GoPlace, find_go_table

NAMES = [b"main.f", b"runtime.goexit", b"main.(*T).Do"]
NEW = [GO_18, GO_20]


def functions_of(data: bytes) -> GoFunctions | None:
    elf = ElfFile(BytesSource(data))
    place = find_go_table(elf)
    return GoFunctions(elf.source, place) if place is not None else None


def names_at(functions: GoFunctions | None, *addresses: int) -> list[str | None]:
    assert functions is not None
    return functions.find(np.array(addresses, np.uint64))


def assert_named(data: bytes, text: int = TEXT) -> None:
    functions = functions_of(data)
    found = names_at(functions, text - 1, text, text + 15, text + 16, text + 32, text + 47, text + 48, 0, 1 << 63)
    first, second, third = "main.f", "runtime.goexit", "main.(*T).Do"
    assert found == [None, first, first, second, third, third, None, None, None]
    assert functions is not None
    assert len(functions) == 3


@pytest.mark.parametrize("magic", LAYOUTS)
def test_each_layout(magic: int) -> None:
    assert_named(go_program(go_table(magic, NAMES, header_text=TEXT)))


@pytest.mark.parametrize("magic", NEW)
def test_a_relocation_has_the_begin_of_the_code(magic: int) -> None:
    for sections in ((".gopclntab",), ()):
        data = go_program(go_table(magic, NAMES), sections=sections, relocations=[(8, 9), (TABLE + 24, TEXT)])
        assert_named(data)


@pytest.mark.parametrize("sections", [(".gopclntab", ".go.module"), (".gopclntab",), ()])
def test_moduledata_has_the_begin_of_the_code(sections: Sequence[str]) -> None:
    """Go 1.26 and newer: the words are in the file, or relocations have them."""
    table = go_table(GO_20, NAMES)
    assert_named(go_program(table, sections=sections, module=module_data()))
    relocations = [(DATA, TABLE), (DATA + 160, TEXT), (DATA + 176, TEXT)]
    assert_named(go_program(table, sections=sections, module=bytes(200), relocations=relocations))


def test_moduledata_that_does_not_fit_tells_nothing() -> None:
    table = go_table(GO_20, NAMES)
    for module in (module_data(table=TABLE + 8), module_data(first=TEXT + 16), module_data(text=0), b""):
        for sections in ((".gopclntab", ".go.module"), (".gopclntab",), ()):
            assert functions_of(go_program(table, sections=sections, module=module)) is None


@pytest.mark.parametrize("magic", LAYOUTS)
def test_programs_without_section_headers(magic: int) -> None:
    table = go_table(magic, NAMES, header_text=TEXT)
    assert_named(go_program(table, sections=()))
    # The linker puts it behind other data in position-independent programs that have C in them.
    assert_named(go_program(bytes(4096) + table, sections=()))


def test_only_programs_that_go_has_linked_are_searched() -> None:
    data = go_program(go_table(GO_20, NAMES, header_text=TEXT), sections=(), note=False)
    assert functions_of(data) is None
    assert not is_of_go(ElfFile(BytesSource(data)))
    assert is_of_go(ElfFile(BytesSource(go_program(go_table(GO_20, NAMES), sections=()))))


def test_tables_of_other_layouts_and_machines() -> None:
    table = go_table(GO_20, NAMES, header_text=TEXT)
    for at, value in ((0, 0xF2), (4, 1), (6, 4), (7, 4)):  # magic number, padding, arm64's instructions, 32 bits
        other = bytearray(table)
        other[at] = value
        assert functions_of(go_program(bytes(other))) is None


def test_what_does_not_fit_into_the_table() -> None:
    def changed(at: int, value: int, layout: str = "<Q") -> bytes:
        table = bytearray(go_table(GO_20, NAMES, header_text=TEXT))
        struct.pack_into(layout, table, at, value)
        return bytes(table)

    records = struct.unpack_from("<Q", go_table(GO_20, NAMES), 64)[0]
    first = struct.unpack_from("<I", go_table(GO_20, NAMES), records + 4)[0]
    assert functions_of(go_program(changed(8, 1 << 40))) is None
    for broken in (changed(8, 1 << 20), changed(64, 1 << 40), changed(records, 17, "<I")):
        with pytest.raises(ElfError):
            functions_of(go_program(broken))
    for lost in (
        changed(records + 4, 1 << 31, "<I"),  # its record is outside
        changed(records + first, 1, "<I"),  # the record is another function's
        changed(records + first + 4, -1, "<i"),
        changed(records + first + 4, 1 << 30, "<i"),
    ):
        assert names_at(functions_of(go_program(lost)), TEXT, TEXT + 16) == [None, "runtime.goexit"]


def test_more_functions_than_may_be_read() -> None:
    elf = ElfFile(BytesSource(go_program(go_table(GO_20, NAMES, header_text=TEXT))))
    place = find_go_table(elf)
    assert place is not None
    assert len(GoFunctions(elf.source, place, 3)) == 3
    with pytest.raises(TooMuch, match="over 2 symbols"):
        GoFunctions(elf.source, place, 2)


def test_long_names_are_bounded() -> None:
    names = [b"%05d" % i + b"x" * 65_000 for i in range(1100)]
    table = go_table(GO_20, names)
    functions = GoFunctions(BytesSource(table), GoPlace(0, len(table), 0))
    found = functions.find(np.arange(0, 16 * 1100, 16, dtype=np.uint64))
    assert functions.unread == found.count(None) > 50
    assert sum(len(name) for name in found if name) < 65 << 20


def test_damaged_tables_never_crash() -> None:
    generator, named = random.Random(7), 0
    for turn in range(2000):
        sections = [(".gopclntab", ".go.module"), (".gopclntab",), ()][turn % 3]
        data = bytearray(
            go_program(go_table(LAYOUTS[turn % 4], NAMES, header_text=TEXT * (turn % 2)), sections=sections)
        )
        for _ in range(generator.randint(1, 6)):
            at = generator.choice((generator.randrange(400), TABLE - 0x400000 + generator.randrange(300)))
            data[at] = generator.choice((0, 0xFF, 0x80, generator.randrange(256)))
        try:
            functions = functions_of(bytes(data))
        except ElfError:
            continue
        if functions is not None:
            named += any(functions.find(np.arange(TEXT, TEXT + 48, 4, dtype=np.uint64)))
    assert named > 300


PROGRAM = """
package main
import ("fmt"; "os"; "time")
type pair[K comparable] struct { k K; v int }
//go:noinline
func total[K comparable](pairs []pair[K]) int { t := 0; for _, p := range pairs { t += p.v }; return t }
func main() {
	go func() { time.Sleep(time.Millisecond) }()
	fmt.Fprintln(os.Stderr, total([]pair[string]{{"a", 1}}), total([]pair[int]{{1, 1}}))
}
"""
WITH_C = PROGRAM.replace(
    "package main", 'package main\n// static int twice(int x) { return 2 * x; }\nimport "C"', 1
).replace("func main() {", "func main() { println(C.twice(4))")


@pytest.mark.parametrize("cgo", [False, True], ids=["", "with C"])
@pytest.mark.parametrize("mode", ["exe", "pie"])
def test_names_are_those_of_the_symbol_table(tmp_path: Path, go_home: Path, mode: str, cgo: bool) -> None:
    (tmp_path / "program.go").write_text(WITH_C if cgo else PROGRAM)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(go_home), "CGO_ENABLED": str(int(cgo)), "GOFLAGS": "-p=1"}
    command = ["go", "build", f"-buildmode={mode}", "-o", "program", "program.go"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=300)
    subprocess.run(["strip", "--strip-all", "-o", "stripped", "program"], cwd=tmp_path, check=True)
    listed = subprocess.run(["nm", "-S", "program"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    rows = [line.split(maxsplit=3) for line in listed.splitlines()]
    truth, sizes = defaultdict(set), {}
    for value, size, kind, name in (row for row in rows if len(row) == 4):
        if kind in "tT" and ("." in name or ":" in name) and not name.endswith((".cold", ".part.0")):
            truth[int(value, 16)].add(name)
            sizes[int(value, 16)] = int(size, 16)
    stripped = (tmp_path / "stripped").read_bytes()
    without_headers = stripped[:40] + bytes(8) + stripped[48:58] + bytes(6) + stripped[64:]
    for data in (stripped, without_headers):
        asked = [(at, at + i) for at, size in sizes.items() for i in (0, size // 2, size - 1) if size]
        found = names_at(functions_of(data), *(at for _, at in asked))
        assert len(found) > 3000
        # Go up to 1.20 leaves out type arguments; symbol tables also say how a function is called.
        wrong = [
            (hex(at), name, truth[begin])
            for (begin, at), name in zip(asked, found, strict=True)
            if name not in truth[begin] and f"{name}.abi0" not in truth[begin] and "[...]" not in str(name)
        ]
        assert not wrong, wrong[:5]
