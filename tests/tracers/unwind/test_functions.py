from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from stallscope.tracers.images.elf import BytesSource, ElfFile
from stallscope.tracers.unwind.functions import function_bounds
from stallscope.tracers.unwind.sections import UnwindError

Build = Callable[..., Path]
Load = Callable[[Path], ElfFile]

FUNCTION = """
.globl {0}
.type {0},@function
{0}: .cfi_startproc
.skip {1},0x90
.cfi_endproc
.size {0},.-{0}
.skip {2},0xcc
"""
THREE = ".text\n" + "".join(
    FUNCTION.format(name, size, gap) for name, size, gap in (("f", 10, 6), ("g", 20, 0), ("h", 30, 2))
)


def symbols(library: Path) -> dict[str, tuple[int, int]]:
    text = subprocess.run(["readelf", "-sW", library], check=True, capture_output=True, text=True).stdout
    found = re.findall(r"([0-9a-f]{16})\s+(\d+) FUNC .* (\w)\n", text)
    return {name: (int(value, 16), int(value, 16) + int(size)) for value, size, name in found}


@pytest.mark.parametrize("sections", [".eh_frame", ".debug_frame", ".eh_frame, .debug_frame"])
def test_bounds_are_those_of_the_symbols(sections: str, build: Build, load: Load) -> None:
    library = build(f".cfi_sections {sections}\n" + THREE)
    begins, ends = function_bounds(load(library))
    expected = symbols(library)
    assert list(zip(begins.tolist(), ends.tolist(), strict=True)) == [expected[name] for name in "fgh"]
    assert begins.dtype == ends.dtype == np.uint64


def test_stripped_library_has_them_too(build: Build, load: Load) -> None:
    library = build(THREE)
    before = function_bounds(load(library))
    subprocess.run(["strip", library], check=True)
    assert np.array_equal(before, function_bounds(load(library)))


def test_without_section_headers_and_with_a_separate_file(build: Build, load: Load, tmp_path: Path) -> None:
    library = build(THREE)
    expected = function_bounds(load(library))
    data = bytearray(library.read_bytes())
    data[40:48], data[60:64] = bytes(8), bytes(4)
    assert np.array_equal(expected, function_bounds(ElfFile(BytesSource(bytes(data)))))
    library = build(".cfi_sections .debug_frame\n" + THREE)
    debug = tmp_path / "code.debug"
    subprocess.run(["objcopy", "--only-keep-debug", library, debug], check=True)
    subprocess.run(["strip", library], check=True)
    begins, ends = function_bounds(load(library), load(debug))
    assert (ends - begins).tolist() == [10, 20, 30]
    with pytest.raises(UnwindError):
        function_bounds(load(library))


def test_they_are_sorted_and_do_not_overlap(require: Callable[[bool, str], None], load: Load) -> None:
    path = Path("/lib/x86_64-linux-gnu/libc.so.6")
    require(path.exists(), "there is no Debian glibc")
    begins, ends = function_bounds(load(path))
    assert len(begins) > 2000
    assert (begins < ends).all()
    assert (ends[:-1] <= begins[1:]).all()
