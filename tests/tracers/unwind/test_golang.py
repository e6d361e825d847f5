"""Go's own table of its stacks, against the call frame information that Go's linker writes for the same program."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from go_tables import GO_2, GO_16, GO_18, GO_20, LAYOUTS, TABLE, TEXT, go_program, go_table, module_data
from stallscope.tracers.images.elf import BytesSource, ElfError, ElfFile
from stallscope.tracers.unwind import rows
from stallscope.tracers.unwind.compiler import compile_sections, compile_table, find_sections
from stallscope.tracers.unwind.golang import GoTable, find_go, go_functions, go_roots, go_rows

PROGRAM = """
package main
import ("fmt"; "os"; "time")
//go:noinline
func deep(n int) int {
	if n == 0 { time.Sleep(time.Millisecond); return 0 }
	var v [64]int
	v[n] = deep(n - 1)
	return v[n] + 1
}
func main() { go deep(3); fmt.Fprintln(os.Stderr, deep(5)) }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, go_home: Path) -> Callable[..., ElfFile]:
    folder = tmp_path_factory.mktemp("go")
    (folder / "program.go").write_text(PROGRAM)

    def build(*options: str) -> ElfFile:
        target = folder / "-".join(["program", *options]).replace(" ", "")
        if not target.exists():
            environment = {"PATH": "/usr/bin:/bin", "HOME": str(go_home), "CGO_ENABLED": "0", "GOFLAGS": "-p=1"}
            command = ["go", "build", *options, "-o", str(target), "program.go"]
            subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, timeout=300)
        return ElfFile(BytesSource(target.read_bytes()))

    return build


def table_of(elf: ElfFile) -> GoTable:
    table = find_go(elf)
    assert table is not None
    return table


def test_rows_are_those_of_debug_frame(program: Callable[..., ElfFile]) -> None:
    elf = program()
    described = compile_sections(elf, find_sections(elf)._replace(go=None, code=None))
    table = table_of(elf)
    found = list(go_rows(table, go_functions(table)))
    assert len(found) > 3000
    truth = described.find(np.array([pc for pc, _ in found], np.uint64))
    wrong = [
        (hex(pc), hex(word), row)
        for (pc, word), row in zip(found, truth, strict=True)
        if word >> 24 & 15 and (word >> 24 & 15, word & 0xFFFF) != (int(row["rule"]) & 15, int(row["cfa"]))
    ]
    assert not wrong, wrong[:5]


@pytest.mark.parametrize("options", [("-ldflags=-s -w",), ("-ldflags=-s -w", "-buildmode=pie")], ids=["exe", "pie"])
def test_stripped_programs_have_the_same(program: Callable[..., ElfFile], options: tuple[str, ...]) -> None:
    elf = program(*options)
    assert not find_sections(elf).found
    table = compile_table(elf)
    names = {function.name: function for function in go_functions(table_of(elf))}
    goexit, sleep = names[b"runtime.goexit"], names[b"time.Sleep"]
    kinds = table.find(np.array([goexit.pc, goexit.pc + 1, sleep.pc, sleep.pc + 32], np.uint64))["rule"] & 15
    assert kinds.tolist() == [rows.END, rows.END, rows.RSP, rows.RSP]
    assert elf.code_at(sleep.pc, 1)


def test_stacks_end_where_the_scheduler_changes_over(program: Callable[..., ElfFile]) -> None:
    elf = program()
    functions = go_functions(table_of(elf))
    roots = list(go_roots(functions, elf.code_at))
    names = {function.name.removesuffix(b".abi0"): function for function in functions}
    table = compile_table(elf)
    for name in (b"runtime.mcall", b"runtime.systemstack"):
        function = names[name]
        (begin, end), *more = [root for root in roots if function.pc <= root[0] < function.end]
        assert function.pc < begin < end <= function.end
        assert not more
        kinds = [int(table.find(np.array([at], np.uint64))["rule"][0]) & 15 for at in (function.pc, begin, end - 1)]
        assert kinds == [rows.RSP, rows.END, rows.END]
        code = elf.code_at(function.pc, end - function.pc)
        # The call on the other stack, "call *%rdi" or "call *%r12", lies between.
        assert any(begin - function.pc <= at for at in (code.rfind(b"\xff\xd7"), code.rfind(b"\xff\xd4")))
    assert (names[b"runtime.mstart"].pc, names[b"runtime.mstart"].end) in roots


@pytest.mark.parametrize("magic", LAYOUTS)
def test_layouts(magic: int) -> None:
    text = 0x1000 if magic in (GO_18, GO_20) else 0
    table = GoTable(go_table(magic, [b"main.f", b"runtime.goexit"], text=0x1000), text)
    functions = go_functions(table)
    assert [(f.pc, f.end, f.name) for f in functions] == [
        (0x1000, 0x1010, b"main.f"),
        (0x1010, 0x1020, b"runtime.goexit"),
    ]
    rule = rows.pack(rows.RSP | rows.RBP_UNKNOWN << 4, 1), rows.pack(rows.RSP | rows.RBP_UNKNOWN << 4, 2)
    assert list(go_rows(table, functions[:1])) == [(0x1000, rule[0]), (0x1008, rule[1]), (0x1010, rows.pack(rows.GAP))]
    assert list(go_roots(functions, lambda at, size: b"")) == [(0x1010, 0x1020)]


def test_the_begin_of_the_code_may_be_elsewhere() -> None:
    """Headers of Go 1.26 and newer do not have it; and there may be no section headers."""
    table = go_table(GO_20, [b"main.f", b"runtime.goexit"])
    for data in (
        go_program(table, sections=(".gopclntab", ".go.module"), module=module_data()),
        go_program(table, sections=(), module=module_data()),
        go_program(table, relocations=[(TABLE + 24, TEXT)]),
    ):
        found = go_functions(table_of(ElfFile(BytesSource(data))))
        assert [(f.pc, f.name) for f in found] == [(TEXT, b"main.f"), (TEXT + 16, b"runtime.goexit")]


def test_damaged_tables_never_crash() -> None:
    generator = random.Random(6)
    refused = 0
    for turn in range(3000):
        data = bytearray(
            go_table((GO_2, GO_16, GO_18)[turn % 3], [b"main.f", b"runtime.goexit", b"main.g"], text=0x1000)
        )
        for _ in range(generator.randint(1, 4)):
            data[generator.randrange(8, len(data))] = generator.choice((0, 0xFF, 0x80, generator.randrange(256)))
        try:
            found = list(go_rows(table := GoTable(bytes(data), 0), go_functions(table)))
        except ElfError:
            refused += 1
        else:
            assert all(0 <= pc < 1 << 64 for pc, _ in found)
    assert 100 < refused < 2900
