"""Whole files: each row is what readelf says of that address; damage is refused and costs nothing."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from stallscope.tracers.images.elf import BytesSource, ElfError, ElfFile
from stallscope.tracers.unwind import rows
from stallscope.tracers.unwind.compiler import UnwindError, compile_sections, compile_table, find_sections
from stallscope.tracers.unwind.rows import UnwindTable

Require = Callable[[bool, str], None]
Build = Callable[..., Path]
Load = Callable[[Path], ElfFile]
Frames = list[tuple[int, int, list[tuple[int, int]]]]
Readelf = Callable[[Path], Frames]

LIBRARIES = [
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib64/ld-linux-x86-64.so.2",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/lib/x86_64-linux-gnu/libpython3.*.so.1.0",
    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
    "/usr/lib/x86_64-linux-gnu/libLLVM*.so*",
]


def described(elf: ElfFile) -> UnwindTable:
    """The table of what the frame descriptions say alone: start-up code, which has none, is read in addition."""
    return compile_sections(elf, find_sections(elf)._replace(go=None, code=None))


def words_of(table: UnwindTable) -> np.ndarray:
    return table.rows.view("<u4").reshape(-1, 2)[:, 1]


def kinds(table: UnwindTable) -> list[tuple[int, int, int, int, int]]:
    """(pc, CFA kind, cfa, rbp kind, rbp) of each row."""
    return [(int(r["pc"]), int(r["rule"]) & 15, int(r["cfa"]), int(r["rule"]) >> 4, int(r["rbp"])) for r in table.rows]


def compare(table: UnwindTable, frames: Frames) -> tuple[int, int]:
    """Fails unless the table is row for row what ``frames`` say; returns (rows, how many by expression)."""
    pcs: list[int] = []
    words: list[int] = []
    reached = 0
    for begin, end, said in sorted(frames, key=lambda frame: frame[0]):
        if begin < reached or begin == end:
            continue
        if pcs and begin == reached:
            pcs.pop()
            words.pop()
        last = {pc: word for pc, word in said if pc < end}
        pcs += [*last, end]
        words += [*last.values(), rows.pack(rows.GAP)]
        reached = end
    at = np.array(pcs, np.uint64)
    expected = np.array(words, np.int64)
    found = table.find(at).view("<u4").reshape(-1, 2)[:, 1].astype(np.int64)
    wrong = np.flatnonzero((expected != found) & (expected != -1))
    assert not len(wrong), [(hex(pcs[i]), hex(words[i]), hex(int(found[i]))) for i in wrong[:5]]
    by_expression = found[expected == -1] >> 24
    assert not np.isin(by_expression & 15, [rows.GAP, rows.END]).any()
    # Where the CFA is not by expression, rbp is.
    assert (by_expression[by_expression & 15 == rows.RSP] >> 4 > rows.RBP_AT_CFA).all()
    # No row stands where readelf has none.
    assert np.isin(table.rows["pc"], at).all()
    merged = rows.merge(at.astype(np.uint32), found.astype(np.uint32))
    assert np.array_equal(merged, table.rows)
    return len(at), int((expected == -1).sum())


@pytest.mark.parametrize("pattern", LIBRARIES)
def test_library_row_for_row(pattern: str, require: Require, readelf: Readelf, load: Load) -> None:
    path = next(iter(sorted(Path("/").glob(pattern[1:]))), None)
    require(path is not None, f"there is no {pattern}")
    assert path is not None
    table = described(load(path))
    count, by_expression = compare(table, readelf(path))
    assert count > 500
    assert by_expression < count / 100
    assert rows.REASONS[rows.DAMAGED] not in table.refused


def test_vdso_row_for_row(vdso_image: Path, readelf: Readelf, load: Load) -> None:
    count, _ = compare(described(load(vdso_image)), readelf(vdso_image))
    assert count > 5


def test_signal_trampoline_and_thread_start_of_libc(require: Require, load: Load) -> None:
    path = Path(LIBRARIES[0])
    require(path.exists(), "there is no Debian glibc")
    table = compile_table(load(path))
    signal = [row for row in kinds(table) if row[1] == rows.SIGNAL]
    # struct ucontext: rbp at 120, rsp at 160, rip at 168 from rsp on.
    assert [row[1:] for row in signal] == [(rows.SIGNAL, 20, rows.RBP_AT_RSP, 15)]
    assert any(row[1] == rows.END for row in kinds(table))
    assert [row[2] for row in kinds(table) if row[1] == rows.PLT] == [11]


RICH = r"""
#include <alloca.h>
#include <cstdio>
#include <stdexcept>
struct alignas(64) Wide { char bytes[256]; };
extern "C" __attribute__((noinline)) int thrower(int n) { if (n > 3) throw std::runtime_error("x"); return n; }
extern "C" __attribute__((noinline)) int variable(int n) {
    char *room = static_cast<char *>(alloca(n * 16));
    for (int i = 0; i < n; i++) room[i] = thrower(i);
    return room[n / 2];
}
extern "C" __attribute__((noinline)) int aligned(int n, ...) {
    Wide w; std::snprintf(w.bytes, sizeof w.bytes, "%d", variable(n)); return w.bytes[n] ;
}
extern "C" __attribute__((noinline)) int large(int n) {
    volatile char big[300000]; big[n] = n; return thrower(big[n]) + 1;
}
int main(int argc, char **) { try { return aligned(argc) + large(argc); } catch (std::exception &) { return 1; } }
"""


@pytest.mark.parametrize("flags", [["-fomit-frame-pointer"], ["-fno-omit-frame-pointer"], ["-Wl,-z,ibtplt"]], ids=str)
def test_optimised_program(flags: list[str], tmp_path: Path, gcc: str, readelf: Readelf, load: Load) -> None:
    source, program = tmp_path / "rich.cc", tmp_path / "rich"
    source.write_text(RICH)
    subprocess.run([gcc, "-O2", *flags, "-Wl,-z,lazy", "-o", program, source, "-lstdc++"], check=True)
    table = described(load(program))
    compare(table, readelf(program))
    assert {rows.RSP, rows.RBP, rows.PLT, rows.END} <= {row[1] for row in kinds(table)}


FUNCTION = ".text\n.globl f\n.type f,@function\nf:\n.cfi_startproc\n{}\n.cfi_endproc\n.size f,.-f\n"


def compile_asm(build: Build, load: Load, *directives: str) -> list[tuple[int, int, int, int, int]]:
    """Rows of a function of which each directive follows one nop; pcs from its start."""
    table = compile_table(load(build(FUNCTION.format("\n".join(f"nop\n{text}" for text in directives) + "\nnop"))))
    start = int(table.rows["pc"][0])
    return [(row[0] - start, *row[1:]) for row in kinds(table)]


SAME = (rows.RBP_SAME, 0)


@pytest.mark.parametrize(
    ("directives", "expected"),
    [
        ([".cfi_def_cfa_offset 16"], [(0, rows.RSP, 1, *SAME), (1, rows.RSP, 2, *SAME)]),
        ([".cfi_def_cfa rbp, 24"], [(0, rows.RSP, 1, *SAME), (1, rows.RBP, 3, *SAME)]),
        ([".cfi_def_cfa_register 6"], [(0, rows.RSP, 1, *SAME), (1, rows.RBP, 1, *SAME)]),
        ([".cfi_adjust_cfa_offset 4096"], [(0, rows.RSP, 1, *SAME), (1, rows.RSP, 513, *SAME)]),
        ([".cfi_offset 6, -16"], [(0, rows.RSP, 1, *SAME), (1, rows.RSP, 1, rows.RBP_AT_CFA, -2)]),
        (
            [".cfi_offset 6, -24", ".cfi_restore 6"],
            [(0, rows.RSP, 1, *SAME), (1, rows.RSP, 1, rows.RBP_AT_CFA, -3), (2, rows.RSP, 1, *SAME)],
        ),
        (
            [".cfi_remember_state", ".cfi_def_cfa 6, 16", ".cfi_restore_state"],
            [(0, rows.RSP, 1, *SAME), (2, rows.RBP, 2, *SAME), (3, rows.RSP, 1, *SAME)],
        ),
        ([".cfi_undefined 6"], [(0, rows.RSP, 1, *SAME), (1, rows.RSP, 1, rows.RBP_UNKNOWN, rows.DEFINED)]),
        ([".cfi_register 6, 3"], [(0, rows.RSP, 1, *SAME), (1, rows.RSP, 1, rows.RBP_UNKNOWN, rows.RBP_ELSEWHERE)]),
        ([".cfi_offset 6, -16", ".cfi_same_value 6"],
         [(0, rows.RSP, 1, *SAME), (1, rows.RSP, 1, rows.RBP_AT_CFA, -2), (2, rows.RSP, 1, *SAME)]),
        ([".cfi_val_offset 6, -16"], [(0, rows.RSP, 1, *SAME), (1, rows.RSP, 1, rows.RBP_UNKNOWN, rows.RBP_ELSEWHERE)]),
        ([".cfi_undefined 16"], [(0, rows.RSP, 1, *SAME), (1, rows.END, 0, 0, 0)]),
        ([".cfi_register 16, 2"], [(0, rows.RSP, 1, *SAME), (1, rows.UNKNOWN, rows.RA_ELSEWHERE, 0, 0)]),
        ([".cfi_def_cfa 10, 0"], [(0, rows.RSP, 1, *SAME), (1, rows.UNKNOWN, rows.CFA_REGISTER, 0, 0)]),
        ([".cfi_def_cfa_offset 12"], [(0, rows.RSP, 1, *SAME), (1, rows.UNKNOWN, rows.CFA_OFFSET, 0, 0)]),
        ([".cfi_def_cfa_offset 262144"], [(0, rows.RSP, 1, *SAME), (1, rows.UNKNOWN, rows.CFA_OFFSET, 0, 0)]),
        ([".cfi_def_cfa_offset 262136"], [(0, rows.RSP, 1, *SAME), (1, rows.RSP, 32767, *SAME)]),
        ([".cfi_offset 7, -24"], [(0, rows.RSP, 1, *SAME), (1, rows.UNKNOWN, rows.SP_ELSEWHERE, 0, 0)]),
        # def_cfa_expression: breg6 -8, deref; then breg7 328, deref, plus_uconst 8
        ([".cfi_escape 0x0f,3,0x76,0x78,0x06"], [(0, rows.RSP, 1, *SAME), (1, rows.RBP_DEREF, -1, *SAME)]),
        ([".cfi_escape 0x0f,6,0x77,0xc8,2,0x06,0x23,8"], [(0, rows.RSP, 1, *SAME), (1, rows.RSP_DEREF_8, 41, *SAME)]),
        ([".cfi_escape 0x0f,1,0x9c"], [(0, rows.RSP, 1, *SAME), (1, rows.UNKNOWN, rows.CFA_EXPRESSION, 0, 0)]),
        # expression of rbp: breg6 0
        ([".cfi_escape 0x10,6,2,0x76,0"], [(0, rows.RSP, 1, *SAME), (1, rows.RSP, 1, rows.RBP_AT_RBP, 0)]),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) and isinstance(value[0], str) else "",
)  # fmt: skip
def test_directive(directives: list[str], expected: list[tuple[int, ...]], build: Build, load: Load) -> None:
    directives = [text.replace("rbp", "%rbp") for text in directives]
    length = len(directives) + 1
    assert compile_asm(build, load, *directives) == [*expected, (length, rows.GAP, 0, 0, 0)]


@pytest.mark.parametrize("nops", [63, 64, 300, 70_000])
def test_advances_of_all_widths(nops: int, build: Build, load: Load) -> None:
    body = f".skip {nops},0x90\n.cfi_def_cfa_offset 16\nnop"
    table = compile_table(load(build(FUNCTION.format(body))))
    assert np.diff(table.rows["pc"]).tolist() == [nops, 1]


C_CODE = "int g(int); int f(int n) { char c[64]; c[n] = n; return g(c[1]) + c[n]; } int g(int n) { return n * 3; }"


@pytest.mark.parametrize("packed", [[], ["-gz=zlib"]], ids=["plain", "compressed"])
@pytest.mark.parametrize("version", ["-gdwarf-3", "-gdwarf-5"])
def test_debug_frame_only(packed: list[str], version: str, build: Build, readelf: Readelf, load: Load) -> None:
    flags = ["-O1", version, "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", *packed]
    library = build(C_CODE, *flags, "-fno-stack-protector", suffix=".c")
    sections = find_sections(load(library)).found
    assert [section.is_eh for section in sections if section.data] == [False]
    count, _ = compare(compile_table(load(library)), readelf(library))
    assert count >= 4


def test_debug_frame_of_the_separate_file(build: Build, load: Load, tmp_path: Path) -> None:
    library = build(C_CODE, "-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", suffix=".c")
    debug, bare = tmp_path / "code.debug", tmp_path / "bare.so"
    subprocess.run(["objcopy", "--only-keep-debug", library, debug], check=True)
    subprocess.run(["strip", "-o", bare, library], check=True)
    with pytest.raises(UnwindError):
        described(load(bare))
    assert np.array_equal(compile_table(load(bare), load(debug)).rows, compile_table(load(library)).rows)


def test_without_section_headers(build: Build, load: Load) -> None:
    library = build(C_CODE, "-O1", suffix=".c")
    data = bytearray(library.read_bytes())
    data[40:48] = bytes(8)  # e_shoff
    data[60:64] = bytes(4)  # e_shnum, e_shstrndx
    bare = compile_table(ElfFile(BytesSource(bytes(data))))
    assert np.array_equal(bare.rows, compile_table(load(library)).rows)


def test_eh_frame_wins_over_debug_frame(build: Build, load: Load) -> None:
    library = build(".cfi_sections .eh_frame, .debug_frame\n" + FUNCTION.format("nop"))
    assert len(find_sections(load(library)).found) == 2
    table = compile_table(load(library))
    assert table.refused == {"described before": 1}
    assert len(table.rows) == 2


SET_LOC = r"""
.text
.globl f
f: .skip 64, 0x90
.section .debug_frame,"",@progbits
.long 2f-1f
1: .long -1
.byte 3, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0
2: .long 4f-3f
3: .long 0
.quad f, 64
.byte 0x41, 0x0e, 16, 1
.quad f + 9
.byte 0x0e, 24, 0x86, 3, 0x42, 0x0e, 32, 1
.quad f + 40
.byte 0x0e, 8, 0xc6, 0, 0, 0
4:
"""


def test_set_loc(build: Build, readelf: Readelf, load: Load) -> None:
    library = build(SET_LOC)
    table = compile_table(load(library))
    compare(table, readelf(library))
    start = int(table.rows["pc"][0])
    assert (table.rows["pc"] - start).tolist() == [0, 1, 9, 11, 40, 64]
    assert not table.refused


def test_another_machine_is_refused(build: Build) -> None:
    data = bytearray(build(FUNCTION.format("nop")).read_bytes())
    data[18:20] = (183).to_bytes(2, "little")  # EM_AARCH64
    with pytest.raises(UnwindError, match="machine 183"):
        compile_table(ElfFile(BytesSource(bytes(data))))


def sound(table: UnwindTable) -> bool:
    pcs = table.rows["pc"].astype(np.int64)
    return bool((np.diff(pcs) > 0).all() and (table.rows["rule"][-1:] == rows.GAP).all())


def test_damaged_bytes_never_crash(vdso_image: Path, build: Build, load: Load) -> None:
    generator = random.Random(4)
    images = [vdso_image.read_bytes(), build(C_CODE, "-g", suffix=".c").read_bytes()]
    begin = time.monotonic()
    outcomes = {"table": 0, "refused": 0}
    for turn in range(1500):
        data = bytearray(images[turn % 2])
        sections = [row for row in ElfFile(BytesSource(bytes(data))).sections if row["size"] > 0]
        for _ in range(generator.randint(1, 8)):
            row = generator.choice(sections)
            at = min(int(row["offset"]) + generator.randrange(int(row["size"])), len(data) - 1)
            data[at] = generator.choice((0, 0xFF, 0x7F, 0x80, generator.randrange(256)))
        try:
            assert sound(compile_table(ElfFile(BytesSource(bytes(data)))))
            outcomes["table"] += 1
        except (UnwindError, ElfError):
            outcomes["refused"] += 1
    assert outcomes["table"] > 100
    assert time.monotonic() - begin < 120


@pytest.fixture(scope="module")
def small_library(require: Require) -> bytes:
    path = Path("/lib/x86_64-linux-gnu/libgcc_s.so.1")
    require(path.exists(), "there is no libgcc_s")
    return path.read_bytes()


def damaged(image: bytes, generator: random.Random) -> tuple[bytes, bytes]:
    """``image`` with some bytes of its frame sections changed; and that without .eh_frame_hdr's segment."""
    data = bytearray(image)
    elf = ElfFile(BytesSource(image))
    for _ in range(generator.randint(1, 12)):
        header = elf.section_header(generator.choice((b".eh_frame", b".eh_frame", b".eh_frame_hdr")))
        at = int(header["offset"]) + generator.randrange(int(header["size"]))
        size = generator.choice((1, 1, 2, 4, 30))
        data[at : at + size] = generator.choice((bytes(size), b"\xff" * size, generator.randbytes(size)))
    without = bytearray(data)
    for i in range(len(elf.segments)):
        at = int.from_bytes(data[32:40], "little") + 56 * i
        if without[at : at + 4] == (0x6474E550).to_bytes(4, "little"):
            without[at : at + 4] = bytes(4)
    return bytes(data), bytes(without)


def outcome(image: bytes) -> tuple[object, ...]:
    try:
        table = described(ElfFile(BytesSource(image)))
    except UnwindError as error:
        return (str(error),)
    assert sound(table)
    return table.rows.tobytes(), table.base, sorted(table.refused.items())


def test_damaged_frames_of_a_real_library(small_library: bytes) -> None:
    generator = random.Random(7)
    untouched = outcome(small_library)
    seen: set[object] = set()
    for _ in range(200):
        with_header, without = damaged(small_library, generator)
        found = outcome(with_header)
        assert found == outcome(without)
        seen.add(found[0])
    assert len(seen) > 100
    assert outcome(small_library) == untouched


def test_a_huge_section_of_nonsense_takes_bounded_time(build: Build, load: Load) -> None:
    """A program of a megabyte, thousands of the same size, and records of nothing but a CIE."""
    body = '.text\nf: .skip 64, 0x90\n.section .debug_frame,"",@progbits\n.long 2f-1f\n1: .long -1\n'
    body += ".byte 3, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0\n2:\n"
    body += ".long 4f-3f\n3: .long 0\n.quad f, 8\n.skip 1100000, 0x0a\n4:\n"
    body += ".long 6f-5f\n5: .long 0\n.quad f + 8, 8\n.skip 1000000, 0x41\n6:\n"
    body += ".rept 60\n.long 16020\n.long 0\n.quad f + 16, 8\n.skip 16000, 0x0a\n.endr\n"
    table = compile_table(load(build(body)))
    assert sound(table)
    found = [row[1] for row in kinds(table)]
    assert found[0] == rows.UNKNOWN
    assert found[1:] == [rows.RSP, rows.GAP]
