"""Rules that are read from code, against those that the compiler wrote for the same code."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from stallscope.tracers.images.elf import BytesSource, ElfError, ElfFile
from stallscope.tracers.unwind import prologues, rows
from stallscope.tracers.unwind.compiler import UnwindError, compile_sections, compile_table, find_sections
from stallscope.tracers.unwind.frames import State
from stallscope.tracers.unwind.rows import UnwindTable

Require = Callable[[bool, str], None]
Build = Callable[..., Path]
Load = Callable[[Path], ElfFile]

NOTHING = np.zeros(0, np.uint64)
LIBRARY = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"
SHAPES = r"""
#include <alloca.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define NOINLINE __attribute__((noinline))
extern int elsewhere(int, ...);
extern void *known[];
static jmp_buf place;
NOINLINE static int leaf(int n) { int v[8] = {n}; return v[n & 7]; }
NOINLINE static void die(const char *why) { elsewhere(1, why); abort(); }
NOINLINE int many(int a, int b, int c, int d, int e, int f, int g, int h) {
    return elsewhere(a, b, c, d, e, f, g, h, leaf(a)) + g * h;
}
NOINLINE int variable(int n) {
    char *room = alloca(n * 16);
    memset(room, n, n * 16);
    return elsewhere(n, room) + room[n];
}
NOINLINE int shrunk(int n) { if (n < 3) return n; elsewhere(n, &n); return leaf(n) + many(n, 2, 3, 4, 5, 6, 7, 8); }
NOINLINE int guarded(int n) { if (n == 7) die("seven"); if (n == 9) die("nine"); return elsewhere(n, leaf(n)) + 1; }
NOINLINE int choice(int n, int m) {
    switch (n) {
    case 0: return elsewhere(m, 1);
    case 1: m += elsewhere(m, 2, n); break;
    case 2: die("two");
    case 3: m = variable(m); break;
    case 4: return many(m, 1, 2, 3, 4, 5, 6, 7);
    case 5: m *= elsewhere(5, m); /* fall through */
    case 6: m -= elsewhere(6, n, m); break;
    case 7: return leaf(m);
    }
    return m + elsewhere(n);
}
NOINLINE int jumping(int n) { if (setjmp(place)) return leaf(n); elsewhere(n); longjmp(place, 1); }
NOINLINE int summed(int n, ...) {
    va_list list; int sum = 0;
    va_start(list, n);
    while (n--) sum += va_arg(list, double);
    va_end(list);
    return elsewhere(sum);
}
NOINLINE int large(int n) { volatile char big[70000]; big[n] = n; elsewhere(n, big); return big[n] + 1; }
NOINLINE int tail(int n) { return n ? choice(n, n) : elsewhere(n); }
NOINLINE static int by_address(const void *a, const void *b) { return elsewhere(2, a, b) + leaf(3); }
NOINLINE void sorted(int *v, int n) { qsort(v, n, sizeof *v, by_address); elsewhere(n, v); }
static int in_table(int n) { return elsewhere(n, &n) + 2; }
int (*const table[])(int) = {in_table, tail};
"""


def words_at(table: UnwindTable, pcs: list[int]) -> np.ndarray:
    return table.find(np.array(pcs, np.uint64))


def described(elf: ElfFile) -> UnwindTable:
    return compile_sections(elf, find_sections(elf)._replace(go=None, code=None))


def read_alone(elf: ElfFile) -> prologues._Reader:
    """A reader that knows of no description, after its work."""
    code = prologues.find_code(elf, NOTHING)
    assert code is not None
    reader = prologues._Reader(elf, code, [])
    reader.read()
    return reader


def compared(elf: ElfFile) -> tuple[Counter[str], list[str], list[int]]:
    """(instructions by outcome, those that differ, bytes described and those read)."""
    reader, table = read_alone(elf), described(elf)
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    states = {at: state for flow in reader._flows.values() if not flow.problem for at, state in flow.states.items()}
    found = words_at(table, sorted(states))
    for at, row in zip(sorted(states), found, strict=True):
        state, kind, word = states[at], int(row["rule"]) & 15, states[at].row()
        if kind in (rows.GAP, rows.PLT):
            outcomes["not described"] += 1
        elif word >> 24 & 15 == rows.UNKNOWN:
            outcomes["not known"] += 1
        elif agrees(state, row):
            outcomes["equal"] += 1
        else:
            wrong.append(f"{at:#x} {state} and not {row}")
    sizes = [size for flow in reader._flows.values() if not flow.problem for size in flow.sizes.values()]
    covered = [
        int(end - begin)
        for begin, end, rule in zip(table.rows["pc"], table.rows["pc"][1:], table.rows["rule"], strict=False)
        if rule & 15 not in (rows.GAP, rows.PLT)
    ]
    return outcomes, wrong, [sum(covered), sum(sizes)]


def agrees(state: State, row: np.void) -> bool:
    """Whether a state is what the compiler's row says. rbp may be said to be in its register, or where it was saved."""
    kind, rbp_kind = int(row["rule"]) & 15, int(row["rule"]) >> 4
    if {rows.RSP: state.depth, rows.RBP: state.rbp}[kind] != int(row["cfa"]) * 8:
        return False
    if state.rbp == "same":  # before it is set, and after it was restored
        return rbp_kind in (rows.RBP_SAME, rows.RBP_AT_CFA)
    return rbp_kind == rows.RBP_AT_CFA and state.saved == -int(row["rbp"]) * 8


FLAGS = [
    ["-O0"],
    ["-O2"],
    ["-O3", "-fno-omit-frame-pointer"],
    ["-Os"],
    ["-O2", "-fcf-protection=none", "-fno-plt"],
    ["-O2", "-fstack-protector-all"],
]


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
@pytest.mark.parametrize("stripped", [False, True], ids=["symbols", "dynamic symbols"])
def test_what_is_read_is_what_the_compiler_says(flags: list[str], stripped: bool, build: Build, load: Load) -> None:
    library = build(SHAPES, *flags, suffix=".c")
    if stripped:
        subprocess.run(["strip", library], check=True)
    outcomes, wrong, (covered, read) = compared(load(library))
    assert not wrong, wrong[:5]
    assert outcomes["equal"] > 200
    assert outcomes["not known"] == 0
    # At -O0 GCC loads the tables of a switch in a way that is not followed.
    assert read > (0.85 if flags == ["-O0"] else 0.93) * covered, (read, covered)


def test_a_library_of_cxx(require: Require, load: Load) -> None:
    path = Path(LIBRARY)
    require(path.exists(), "there is no libstdc++")
    outcomes, wrong, (covered, read) = compared(load(path))
    assert not wrong, wrong[:5]
    assert outcomes["equal"] > 200_000
    assert outcomes["not known"] == 0
    assert read > 0.9 * covered


def test_code_without_descriptions_has_the_rules_that_it_had_with_them(build: Build, load: Load) -> None:
    with_descriptions = described(load(build(SHAPES, "-O2", "-fno-plt", suffix=".c")))
    library = build(SHAPES, "-O2", "-fno-plt", "-fno-asynchronous-unwind-tables", suffix=".c")
    before = find_sections(load(library))
    assert before.code is not None
    pcs = sorted(at for flow in read_alone(load(library))._flows.values() for at in flow.states)
    both = [words_at(table, pcs) for table in (with_descriptions, compile_table(load(library)))]
    cfa = [(found["rule"] & 15, found["cfa"]) for found in both]
    assert len(pcs) > 200
    by_rsp = cfa[0][0] == rows.RSP
    assert by_rsp.mean() > 0.8
    assert [hex(pcs[i]) for i in np.flatnonzero(by_rsp & (cfa[0][1] != cfa[1][1]))] == []
    assert np.isin(cfa[1][0], (rows.RSP, rows.RBP)).all()


def test_a_library_where_all_functions_are_described_is_not_read(build: Build, load: Load) -> None:
    library = build(SHAPES, "-O2", suffix=".c")
    subprocess.run(["strip", library], check=True)
    assert find_sections(load(library)).code is None


def test_return_from_a_signal_handler(build: Build, load: Load) -> None:
    body = ".text\n.globl f\n.type f,@function\nf: nop\nret\nnop\n.globl g\n.type g,@function\n"
    library = build(body + "g: movq $15,%rax\nsyscall\nhlt\n.size g,.-g\n")
    table = compile_table(load(library))
    start = int(table.rows["pc"][0])
    found = [(int(r["pc"]) - start, int(r["rule"]) & 15, int(r["cfa"]), int(r["rbp"])) for r in table.rows]
    # One byte before the function: a caller is looked up there.
    assert found == [(0, rows.RSP, 1, 0), (2, rows.SIGNAL, 20, 15), (12, rows.RSP, 1, 0), (13, rows.GAP, 0, 0)]


WRONG = {
    "return from within a frame": "push %rbx\nret",
    "paths with different frames": "test %edi,%edi\nje 1f\npush %rbx\n1: mov %edi,%eax\npop %rbx\nret",
    "overlap": "test %edi,%edi\nje 1f + 1\n1: mov $0x90909090,%eax\nret",
    "jump to another": "push %rbx\njmp g",
    "enter": "enter $16,$0\nleave\nret",
    "removes arguments": "ret $8",
    "two bytes": "pushw %ax\nret",
}


@pytest.mark.parametrize("why", WRONG)
def test_what_contradicts_itself_has_no_rules(why: str, build: Build, load: Load) -> None:
    text = ".text\n.globl f, g\n.type f,@function\n.type g,@function\n"
    library = build(f"{text}f:\n{WRONG[why]}\n.balign 16\ng: ret\n.balign 16\n")
    table = compile_table(load(library))
    (refused,) = table.refused
    assert why in refused
    assert [int(row["cfa"]) for row in table.rows] == [1, 0]  # of g alone
    assert table.rows["pc"][1] == table.rows["pc"][0] + 1


def mutated(image: bytes, generator: random.Random) -> Iterator[bytes]:
    for _ in range(150):
        data = bytearray(image)
        for _ in range(generator.randint(1, 40)):
            data[generator.randrange(0x400, len(data))] = generator.choice(
                (0, 0xC3, 0xE9, 0x48, generator.randrange(256))
            )
        yield bytes(data)


def test_damaged_code_never_crashes(build: Build) -> None:
    image = build(SHAPES, "-O2", "-fno-asynchronous-unwind-tables", suffix=".c").read_bytes()
    tables = 0
    for data in mutated(image, random.Random(5)):
        try:
            table = compile_table(ElfFile(BytesSource(data)))
        except (UnwindError, ElfError):
            continue
        assert (np.diff(table.rows["pc"].astype(np.int64)) > 0).all()
        tables += 1
    assert tables > 100
