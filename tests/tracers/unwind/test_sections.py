"""Sections that are read; one that cannot be costs only itself."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from stallscope.tracers.images.elf import BytesSource, ElfFile
from stallscope.tracers.unwind.compiler import compile_table
from stallscope.tracers.unwind.sections import UnwindError, find_sections

Build = Callable[..., Path]

BOTH = ".cfi_sections .eh_frame, .debug_frame\n"
DEBUG_ONLY = ".cfi_sections .debug_frame\n"
CODE = ".text\nf:\n.cfi_startproc\nnop\n.cfi_def_cfa_offset {}\nnop\n.cfi_endproc\n"
MANY = "".join(".cfi_startproc\nnop\n.cfi_def_cfa_offset 16\nnop\n.cfi_endproc\n" for _ in range(60))


def elf(image: bytes) -> ElfFile:
    return ElfFile(BytesSource(image))


def packed(library: Path, how: str) -> bytes:
    target = library.with_suffix(".packed")
    subprocess.run(["objcopy", f"--compress-debug-sections={how}", library, target], check=True)
    return target.read_bytes()


def debug_frame(image: bytes) -> int:
    """Place of its section header."""
    file = elf(image)
    header = file.section_header(b".debug_frame")
    index = next(i for i, row in enumerate(file.sections) if row["offset"] == header["offset"])
    return int.from_bytes(image[40:48], "little") + 64 * index


def patched(image: bytes, at: int, data: bytes) -> bytes:
    return image[:at] + data + image[at + len(data) :]


@pytest.mark.parametrize("how", ["zlib", "zlib-gnu"])
def test_compressed_debug_frame_is_read(how: str, build: Build) -> None:
    library = build(DEBUG_ONLY + ".text\n" + MANY)
    image = packed(library, how)
    name = b".zdebug_frame" if how == "zlib-gnu" else b".debug_frame"
    assert int(elf(image).section_header(name)["size"]) < int(
        elf(library.read_bytes()).section_header(b".debug_frame")["size"]
    )
    assert find_sections(elf(image)).found[0].data == find_sections(elf(library.read_bytes())).found[0].data
    assert np.array_equal(compile_table(elf(image)).rows, compile_table(elf(library.read_bytes())).rows)


def damage(image: bytes, how: str) -> bytes:
    header = debug_frame(image)
    offset, size = header + 24, header + 32
    content = int.from_bytes(image[offset : offset + 8], "little")
    at, data = {
        "zstd": (content, (2).to_bytes(4, "little")),
        "unknown": (content, (9).to_bytes(4, "little")),
        "garbage": (content + 24, b"\xff" * 8),
        "cut": (size, (60).to_bytes(8, "little")),
        "no header": (size, (4).to_bytes(8, "little")),
        "beyond": (offset, (1 << 40).to_bytes(8, "little")),
        "huge": (size, (1 << 40).to_bytes(8, "little")),
    }[how]
    return patched(image, at, data)


DAMAGES = {
    "zstd": "compressed by zstd",
    "unknown": "compressed in an unknown way",
    "garbage": "damaged compression",
    "cut": "too large, or cut short",
    "no header": "compressed in an unknown way",
    "beyond": "truncated, or offsets beyond its end",
    "huge": "too large",
}


@pytest.mark.parametrize("how", DAMAGES)
def test_what_cannot_be_read_costs_only_itself(how: str, build: Build) -> None:
    image = packed(build(BOTH + ".text\n" + MANY), "zlib")
    table = compile_table(elf(damage(image, how)))
    assert dict(table.refused) == {f".debug_frame: {DAMAGES[how]}": 1}
    assert np.array_equal(table.rows, compile_table(elf(image)).rows)


@pytest.mark.parametrize("how", DAMAGES)
def test_reason_when_there_is_nothing_else(how: str, build: Build) -> None:
    image = damage(packed(build(DEBUG_ONLY + ".text\n" + MANY), "zlib"), how)
    with pytest.raises(UnwindError, match=DAMAGES[how]):
        compile_table(elf(image))


def test_separate_debug_file_where_our_own_cannot_be_read(build: Build) -> None:
    good = build(DEBUG_ONLY + ".text\n" + MANY)
    image = packed(good, "zlib")
    table = compile_table(elf(damage(image, "zstd")), elf(image))
    assert np.array_equal(table.rows, compile_table(elf(image)).rows)
    assert dict(table.refused) == {".debug_frame: compressed by zstd": 1}


def test_unreadable_eh_frame_leaves_debug_frame(build: Build) -> None:
    image = build(BOTH + CODE.format(16)).read_bytes()
    file = elf(image)
    eh = file.section_header(b".eh_frame")
    index = next(i for i, row in enumerate(file.sections) if row["offset"] == eh["offset"])
    at = int.from_bytes(image[40:48], "little") + 64 * index
    table = compile_table(elf(patched(image, at + 24, (1 << 40).to_bytes(8, "little"))))
    assert dict(table.refused) == {".eh_frame: truncated, or offsets beyond its end": 1}
    assert np.array_equal(table.rows, compile_table(file).rows)


def test_hints_are_where_descriptions_begin(build: Build) -> None:
    section = find_sections(elf(build(".text\n" + MANY).read_bytes())).found[0]
    assert section.hints is not None
    assert len(section.hints) == 60
    for at in section.hints.tolist():
        assert int.from_bytes(section.data[at + 4 : at + 8], "little") == at + 4


def test_nothing_to_read(build: Build) -> None:
    image = build(".text\nnop\n").read_bytes()
    assert find_sections(elf(image)) == ([], {}, None, None)
    with pytest.raises(UnwindError, match=r"neither \.eh_frame nor \.debug_frame"):
        compile_table(elf(image))
