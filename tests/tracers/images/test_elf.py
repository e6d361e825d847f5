from __future__ import annotations

import lzma
import os
import random
import re
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matching import match_of
from stallscope.tracers.images.elf import BytesSource, ElfError, ElfFile, FileSource, read_string
from stallscope.tracers.images.symtab import Bounds, SymbolTable


def elf(path: Path) -> ElfFile:
    return ElfFile(BytesSource(path.read_bytes()))


def exercise(data: bytes) -> None:
    """All that is ever asked of a file."""
    file = ElfFile(BytesSource(data))
    file.build_id()
    file.debug_link()
    file.embedded()
    file.to_vaddrs(np.array([0, 0x1000, 1 << 63], np.uint64))
    file.code_at(0x1000, 16)
    SymbolTable([file], Bounds.none).find(np.arange(0x1000, 0x1400, 7, dtype=np.uint64))


def test_headers_are_readelfs(program: Path) -> None:
    file = elf(program)
    listed = subprocess.run(["readelf", "-nW", program], capture_output=True, text=True, check=True).stdout
    assert file.build_id() == match_of(r"Build ID: ([0-9a-f]+)", listed)[1]
    assert file.is_64
    listed = subprocess.run(["readelf", "-SW", program], capture_output=True, text=True, check=True).stdout
    assert len(file.sections) == int(match_of(r"There are (\d+) section", listed)[1])


def test_fd_and_bytes_read_alike(program: Path) -> None:
    fd = os.open(program, os.O_RDONLY)
    try:
        assert ElfFile(FileSource(fd)).build_id() == elf(program).build_id() != ""
    finally:
        os.close(fd)


@pytest.mark.parametrize("flags", [["-Wl,-z,separate-code"], ["-Wl,-z,noseparate-code"], ["-static", "-no-pie"]])
def test_file_offsets_become_virtual_addresses(compile_program: Callable[..., Path], flags: list[str]) -> None:
    path = compile_program("int main(void) { return 0; }", *flags)
    listed = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
    pattern = r"LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+) 0x\w+ R E"
    ((offset, vaddr, size),) = [tuple(int(x, 16) for x in m) for m in re.findall(pattern, listed)]
    asked = np.array([offset, offset + size - 1, offset + size], np.uint64)
    vaddrs, known = elf(path).to_vaddrs(asked)
    assert known.tolist() == [True, True, False]
    assert vaddrs.tolist()[:2] == [vaddr, vaddr + size - 1]
    assert elf(path).code_end >= vaddr + size
    assert elf(path).code_at(vaddr, 8) == path.read_bytes()[offset : offset + 8]


def test_32_bit_symbols_and_segments() -> None:
    """Made by hand: a 32-bit compiler is not everywhere."""
    shdr = "<IIIIIIIIII"
    strings, names = b"\0func32\0", b"\0.text\0.symtab\0.strtab\0.shstrtab\0"
    symbols = bytes(16) + struct.pack("<IIIBBH", 1, 0x8048010, 0x10, 0x12, 0, 1)
    base = 52 + 32
    body = strings + names + symbols
    at = {"strings": base, "names": base + len(strings), "symbols": base + len(strings) + len(names)}
    sections = [
        struct.pack(shdr, *[0] * 10),
        struct.pack(shdr, 1, 1, 6, 0x8048000, 0, 0x100, 0, 0, 0, 0),
        struct.pack(shdr, 7, 2, 0, 0, at["symbols"], len(symbols), 3, 1, 0, 16),
        struct.pack(shdr, 15, 3, 0, 0, at["strings"], len(strings), 0, 0, 0, 0),
        struct.pack(shdr, 23, 3, 0, 0, at["names"], len(names), 0, 0, 0, 0),
    ]
    header = b"\x7fELF\x01\x01\x01" + bytes(9)
    header += struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, 0, 52, base + len(body), 0, 52, 32, 1, 40, 5, 4)
    segment = struct.pack("<IIIIIIII", 1, 0, 0x8048000, 0, 0x100, 0x100, 5, 0x1000)
    file = ElfFile(BytesSource(header + segment + body + b"".join(sections)))
    assert not file.is_64
    vaddrs, known = file.to_vaddrs(np.array([0x10, 0x100], np.uint64))
    assert (int(vaddrs[0]), known.tolist()) == (0x8048010, [True, False])
    table = SymbolTable([file], Bounds.none)
    assert table.find(np.array([0x804800F, 0x8048010, 0x804801F, 0x8048020], np.uint64)) == [
        None,
        "func32",
        "func32",
        None,
    ]


def test_debug_link(program: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    debug = tmp_path / "x.debug"
    debug.write_bytes(b"debug")
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program, linked], check=True)
    assert elf(linked).debug_link() == ("x.debug", zlib.crc32(b"debug"))
    assert elf(program).debug_link() is None


def with_section(program: Path, target: Path, name: str, content: bytes) -> ElfFile:
    raw = target.with_suffix(".raw")
    raw.write_bytes(content)
    subprocess.run(["objcopy", f"--add-section={name}={raw}", program, target], check=True)
    return elf(target)


@pytest.mark.parametrize("name", [b"../../etc/passwd", b"/etc/passwd", b"..", b"", b"a/b"])
def test_debug_link_that_is_a_path_is_refused(program: Path, tmp_path: Path, name: bytes) -> None:
    padded = name + b"\0" * (4 - len(name) % 4) + b"\1\2\3\4"
    assert with_section(program, tmp_path / "x", ".gnu_debuglink", padded).debug_link() is None


def test_embedded_symbols(program: Path, tmp_path: Path) -> None:
    packed = lzma.compress(program.read_bytes())
    embedded = with_section(program, tmp_path / "x", ".gnu_debugdata", packed).embedded()
    assert embedded is not None
    assert embedded.build_id() == elf(program).build_id()


@pytest.mark.parametrize("content", [b"not xz", lzma.compress(b"not ELF"), lzma.compress(b"x" * (80 << 20))])
def test_bad_embedded_symbols_are_refused(program: Path, tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ElfError):
        with_section(program, tmp_path / "x", ".gnu_debugdata", content).embedded()


def test_truncated_anywhere_is_refused(program: Path) -> None:
    data = program.read_bytes()
    cuts = [*range(64), *range(64, len(data), 97), len(data) - 1]
    for cut in cuts:
        with pytest.raises(ElfError):
            exercise(data[:cut])


def test_cut_while_open_is_refused(program: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.write_bytes(program.read_bytes())
    fd = os.open(copy, os.O_RDONLY)
    try:
        file = ElfFile(FileSource(fd))
        os.truncate(copy, 100)
        with pytest.raises(ElfError):
            SymbolTable([file], Bounds.none)
        with pytest.raises(ElfError):
            file.build_id()
    finally:
        os.close(fd)


def test_flipped_bytes_never_do_more_than_refuse(program: Path) -> None:
    data = program.read_bytes()
    headers = len(data) - elf(program).sections.nbytes
    chance = random.Random(20240601)
    refused = 0
    for _ in range(1500):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 6)):
            # Where the damage hurts: file and program headers, section headers.
            place = chance.choice([chance.randrange(16, 0x400), chance.randrange(headers, len(data))])
            damaged[place] = chance.choice([0, 0xFF, chance.randrange(256)])
        try:
            exercise(bytes(damaged))
        except ElfError:
            refused += 1
    assert 0 < refused < 1500


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"#!/bin/sh\n" * 20, b"MZ" + bytes(200), bytes(4096)])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(ElfError):
        ElfFile(BytesSource(data))


def test_object_files_and_big_endian_are_refused(program: Path) -> None:
    data = bytearray(program.read_bytes())
    data[16] = 1
    with pytest.raises(ElfError, match="neither"):
        ElfFile(BytesSource(bytes(data)))
    data[16], data[5] = 3, 2
    with pytest.raises(ElfError, match="byte order"):
        ElfFile(BytesSource(bytes(data)))


def test_absurd_symbol_count_allocates_nothing(program: Path, tmp_path: Path) -> None:
    """A sparse file of a terabyte whose symbol table claims most of it."""
    data = bytearray(program.read_bytes())
    shoff = struct.unpack_from("<Q", data, 40)[0]
    for i, row in enumerate(elf(program).sections):
        if row["type"] == 2:
            struct.pack_into("<Q", data, shoff + 64 * i + 32, 24 << 34)
    path = tmp_path / "sparse"
    path.write_bytes(data)
    os.truncate(path, 1 << 40)
    fd = os.open(path, os.O_RDONLY)
    try:
        with pytest.raises(ElfError, match="over 3,000,000 symbols"):
            SymbolTable([ElfFile(FileSource(fd))], Bounds.none)
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    ("index", "expected"), [(0, b""), (1, b"main"), (3, b"in"), (6, None), (7, None), (1000, None), (2**40, None)]
)
def test_strings_end_inside_their_table(index: int, expected: bytes | None) -> None:
    assert read_string(BytesSource(b"??\0main\0xy" + b"z" * 99), 2, 8, index) == expected


def test_long_strings_are_bounded() -> None:
    source = BytesSource(b"a" * 5000 + b"\0" + b"b" * 100_000 + b"\0")
    assert read_string(source, 0, source.size, 0) == b"a" * 5000
    assert read_string(source, 0, source.size, 5001) is None


def test_two_segments_for_one_offset_are_ambiguous(program: Path) -> None:
    data = bytearray(program.read_bytes())
    loads = [i for i in range(struct.unpack_from("<H", data, 56)[0]) if data[64 + 56 * i] == 1]
    code = next(i for i in loads if data[64 + 56 * i + 4] & 1)
    other = next(i for i in loads if i != code)
    at, end = 64 + 56 * code, 64 + 56 * (code + 1)
    offset = np.array([struct.unpack_from("<Q", data, at + 8)[0]], np.uint64)
    # Twice the same is no contradiction.
    data[64 + 56 * other : 64 + 56 * (other + 1)] = data[at:end]
    assert ElfFile(BytesSource(bytes(data))).to_vaddrs(offset)[1].tolist() == [True]
    struct.pack_into("<Q", data, 64 + 56 * other + 16, 0x7000000)
    assert ElfFile(BytesSource(bytes(data))).to_vaddrs(offset)[1].tolist() == [False]


def test_where_code_is_in_the_file(program: Path) -> None:
    elf = ElfFile(FileSource(os.open(program, os.O_RDONLY)))
    (code,) = [each for each in elf.segments if each.type == 1 and each.flags & 1]
    vaddrs = [code.vaddr, code.vaddr + 5, code.vaddr + code.filesz]
    offsets = [elf.to_offset(vaddr) for vaddr in vaddrs]
    assert offsets == [code.offset, code.offset + 5, code.offset + code.filesz]
    assert elf.to_vaddrs(np.array(offsets[:2], np.uint64))[0].tolist() == vaddrs[:2]
    assert elf.to_offset(code.vaddr - 1) is None
    assert elf.to_offset(code.vaddr + code.filesz + 1) is None


def test_where_a_mapping_begins(program: Path) -> None:
    elf = ElfFile(FileSource(os.open(program, os.O_RDONLY)))
    loaded = [each for each in elf.segments if each.type == 1]
    (code,) = [each for each in loaded if each.flags & 1]
    begin, end = code.vaddr & -4096, (code.vaddr + code.filesz + 4095) & -4096
    assert begin > loaded[0].vaddr, "this linker has a segment before the code"
    assert elf.mapped_from(end - begin) == begin
    last = (loaded[-1].vaddr + loaded[-1].memsz + 4095) & -4096
    assert elf.mapped_from(end) == elf.mapped_from(last) == 0 == loaded[0].vaddr
    assert elf.mapped_from(0) is None
    assert elf.mapped_from(last + 4096) is None
    elf.segments = [*elf.segments, code]
    assert elf.mapped_from(end - begin) is None
