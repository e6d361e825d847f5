from __future__ import annotations

import lzma
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from forged_elf import with_symbols
from go_tables import GO_16, GO_20, TEXT, go_program, go_table, module_data
from stallscope.tracers.base.budget import Limit, Readings, Seconds
from stallscope.tracers.base.descriptors import Budget
from stallscope.tracers.images.files import HOST, Root
from stallscope.tracers.images.maps import Mapping
from stallscope.tracers.symbols.objects import ObjectFile

Nm = Callable[..., list[tuple[int, int, str, str]]]


def mapping_of(path: Path) -> Mapping:
    status = path.stat()
    return Mapping(0x1000, 0x2000, 0, str(path), status.st_dev, status.st_ino)


def opened(path: Path) -> ObjectFile:
    return ObjectFile(mapping_of(path), HOST, os.open(path, os.O_RDONLY), time.time_ns())


def names(file: ObjectFile, *addresses: int) -> list[str | None]:
    return file.names(np.array(addresses, np.uint64))


def test_module_and_names(program: Path, nm: Nm) -> None:
    file = opened(program)
    at = {name: value for value, _, _, name in nm(program)}
    assert names(file, at["main"], at["outer_local"], 0) == ["main", "outer_local", None]
    listed = subprocess.run(["readelf", "-nW", program], capture_output=True, text=True, check=True).stdout
    assert file.module.path == str(program)
    assert file.module.build_id in listed
    assert file.module.size > at["main"]
    assert file.problem == ""
    file.close()


def test_debug_file_adds_what_was_stripped(program: Path, tmp_path: Path, nm: Nm) -> None:
    at = {name: value for value, _, _, name in nm(program)}
    stripped, debug = tmp_path / "stripped", tmp_path / "program.debug"
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", program, stripped], check=True)
    assert names(opened(stripped), at["main"], at["outer_local"]) == ["main", "outer_local"]
    debug.unlink()
    assert names(opened(stripped), at["main"], at["outer_local"]) == [None, None]


def test_a_debug_file_of_one_root_names_nothing_in_another(program: Path, tmp_path: Path, nm: Nm) -> None:
    """The file names nothing once a process of another root maps it, either, when names have already been looked up."""
    at = {name: value for value, _, _, name in nm(program)}
    stripped = tmp_path / "stripped"
    subprocess.run(["objcopy", "--strip-all", program, stripped], check=True)
    build_id = opened(stripped).module.build_id
    inside = tmp_path / "root" / f"usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    inside.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, inside], check=True)
    root = Root(os.open(tmp_path / "root", os.O_PATH))
    descriptors = Budget().of(0)
    for early in (False, True):
        file = ObjectFile(mapping_of(stripped), root, os.open(stripped, os.O_RDONLY), time.time_ns(), descriptors)
        file.is_mapped_in(root)
        if early:
            assert names(file, at["main"]) == ["main"]
        file.is_mapped_in(HOST)
        assert names(file, at["main"]) == [None]
        file.close()


def test_damaged_debug_file_costs_only_its_own_names(
    compile_program: Callable[..., Path], tmp_path: Path, nm: Nm
) -> None:
    library = compile_program("int exported(void) { return 1; } static int hidden(void) { return 2; } "
                              "int (*keep)(void) = hidden;", "-shared", "-fPIC")  # fmt: skip
    at = {name: value for value, _, _, name in nm(library)}
    stripped, debug = tmp_path / "stripped", tmp_path / "program.debug"
    subprocess.run(["objcopy", "--only-keep-debug", library, debug], check=True)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", library, stripped], check=True)
    data = bytearray(debug.read_bytes())
    shoff = int.from_bytes(data[40:48], "little")
    for i in range(int.from_bytes(data[60:62], "little")):
        if data[shoff + 64 * i + 4] == 2:
            data[shoff + 64 * i + 40] = 99  # linked to no string table
    debug.write_bytes(data)
    assert names(opened(stripped), at["exported"], at["hidden"]) == ["exported", None]


def test_embedded_symbols_are_used(program: Path, tmp_path: Path, nm: Nm) -> None:
    at = {name: value for value, _, _, name in nm(program)}
    packed = tmp_path / "mini.xz"
    packed.write_bytes(lzma.compress(program.read_bytes()))
    stripped = tmp_path / "stripped"
    subprocess.run(["objcopy", "--strip-all", f"--add-section=.gnu_debugdata={packed}", program, stripped], check=True)
    assert names(opened(stripped), at["outer_local"]) == ["outer_local"]


def go_file(folder: Path, data: bytes) -> ObjectFile:
    (folder / "program").write_bytes(data)
    return opened(folder / "program")


def test_stripped_go_programs_are_named_by_go_s_own_table(tmp_path: Path) -> None:
    file = go_file(tmp_path, go_program(go_table(GO_20, [b"main.f", b"main.g"], header_text=TEXT)))
    assert names(file, TEXT - 1, TEXT, TEXT + 31, TEXT + 32) == [None, "main.f", "main.g", None]
    assert file.readings.symbols.used == 2
    assert file.problem == ""
    file.close()
    assert file.readings.symbols.used == 0
    without_headers = go_program(go_table(GO_20, [b"main.f"]), sections=(), module=module_data())
    assert names(go_file(tmp_path, without_headers), TEXT) == ["main.f"]


def test_a_damaged_table_of_go_names_nothing(tmp_path: Path) -> None:
    table = bytearray(go_table(GO_20, [b"main.f", b"main.g"], header_text=TEXT))
    table[8:16] = (1 << 16).to_bytes(8, "little")
    assert names(go_file(tmp_path, go_program(bytes(table))), TEXT) == [None]


def test_a_table_of_go_counts_as_symbols(tmp_path: Path) -> None:
    file = go_file(tmp_path, go_program(go_table(GO_20, [b"main.f", b"main.g"], header_text=TEXT)))
    file.readings = Readings(symbols=Limit(1))
    assert names(file, TEXT) == [None]
    assert [*file.readings.remarks()] == ["symbols of program are left out: over 1 symbols"]


def test_symbols_come_before_the_table_of_go(program: Path, tmp_path: Path, nm: Nm) -> None:
    """The table is not looked at in a program that has its symbols."""
    at = {name: value for value, _, _, name in nm(program)}["main"]
    table, symbols = tmp_path / "table", tmp_path / "symbols"
    table.write_bytes(go_table(GO_16, [b"main.f"], text=at))
    subprocess.run(["objcopy", f"--add-section=.gopclntab={table}", program, symbols], check=True)
    assert names(opened(symbols), at, 0) == ["main", None]
    subprocess.run(["strip", symbols], check=True)
    assert names(opened(symbols), at, at + 15, at + 16) == ["main.f", "main.f", None]


def split(program: Path, folder: Path) -> tuple[Path, Path]:
    """(stripped program, its debug file), of which the first says nothing."""
    stripped, debug = folder / "stripped", folder / "elsewhere.debug"
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["objcopy", "--strip-all", program, stripped], check=True)
    return stripped, debug


def test_where_functions_begin(program: Path, tmp_path: Path, nm: Nm) -> None:
    at = {name: (value, size) for value, size, _, name in nm(program)}
    file = opened(split(program, tmp_path)[0])
    for function in ("main", "outer_local", "inner"):
        begin, size = at[function]
        asked = np.array([begin, begin + 1, begin + size - 1], np.uint64)
        assert file.starts(asked) == [begin] * 3
    assert file.starts(np.array([0, 1 << 40], np.uint64)) == [None, None]
    assert opened(Path("/dev/null")).starts(np.array([5], np.uint64)) == [None]


def test_a_debug_file_from_elsewhere(program: Path, tmp_path: Path, nm: Nm) -> None:
    at = {name: value for value, _, _, name in nm(program)}
    stripped, debug = split(program, tmp_path)
    file = opened(stripped)
    assert names(file, at["main"]) == [None]
    assert file.lacks_names
    assert file.add_debug_file(os.open(debug, os.O_RDONLY))
    assert not file.lacks_names
    assert names(file, at["main"], at["outer_local"]) == ["main", "outer_local"]
    assert file.starts(np.array([at["main"] + 1], np.uint64)) == [at["main"]]
    file.close()
    assert names(file, at["main"]) == [None]


@pytest.mark.parametrize("build_id", ["", "none"])
def test_another_programs_debug_file_is_refused(
    compile_program: Callable[..., Path], program_source: str, program: Path, tmp_path: Path, build_id: str
) -> None:
    other = compile_program(
        program_source.replace("return 0", "return 9"), *([f"-Wl,--build-id={build_id}"] * bool(build_id))
    )
    debug = tmp_path / "other.debug"
    subprocess.run(["objcopy", "--only-keep-debug", other, debug], check=True)
    file = opened(split(program, tmp_path)[0])
    fd = os.open(debug, os.O_RDONLY)
    assert not file.add_debug_file(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    # Without a build-id nothing proves that a file from elsewhere is its own.
    if build_id:
        nameless = tmp_path / "nameless"
        subprocess.run(["objcopy", "--strip-all", other, nameless], check=True)
        assert not opened(nameless).add_debug_file(os.open(debug, os.O_RDONLY))


def test_where_source_lines_are(
    compile_program: Callable[..., Path], program_source: str, program: Path, tmp_path: Path
) -> None:
    assert opened(program).lines_fd() is None
    built = compile_program(program_source, "-g")
    own = opened(built)
    own_fd = own.lines_fd()
    assert own_fd is not None
    assert os.fstat(own_fd).st_ino == built.stat().st_ino
    # Symbols in the program, lines beside it: `strip -g` leaves it so.
    debug, without = tmp_path / "p.debug", tmp_path / "without"
    subprocess.run(["objcopy", "--only-keep-debug", built, debug], check=True)
    subprocess.run(["objcopy", "-g", f"--add-gnu-debuglink={debug}", built, without], check=True)
    beside = opened(without)
    fd = beside.lines_fd()
    assert fd is not None
    assert os.fstat(fd).st_ino == debug.stat().st_ino
    assert not beside.lacks_names


def test_late_opening(program: Path, tmp_path: Path, nm: Nm) -> None:
    at = {name: value for value, _, _, name in nm(program)}
    copy = Path(shutil.copy(program, tmp_path / "copy"))
    mapping = mapping_of(copy)
    late = ObjectFile(mapping, HOST, None, time.time_ns() + 10**9)
    assert not late.is_open
    assert names(late, at["main"]) == ["main"]
    changed = ObjectFile(mapping, HOST, None, copy.stat().st_ctime_ns - 10**9)
    assert names(changed, at["main"]) == [None]
    assert "replaced" in changed.problem
    copy.unlink()
    gone = ObjectFile(mapping, HOST, None, time.time_ns())
    assert names(gone, at["main"]) == [None]
    assert "No such file" in gone.problem
    assert gone.module.path == str(copy)


@pytest.mark.parametrize("content", [b"", b"no ELF", b"\x7fELF" + bytes(200)])
def test_files_that_are_no_programs(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    file = opened(path)
    offsets, known = file.to_vaddrs(np.array([5], np.uint64))
    assert (offsets.tolist(), known.tolist()) == ([5], [False])
    assert names(file, 5) == [None]
    assert file.problem
    assert file.code_at(0, 4) == b""


def test_close_is_final(program: Path) -> None:
    file = opened(program)
    file.close()
    assert names(file, 0x1100) == [None]
    assert file.problem == "closed"


def test_symbols_of_all_files_are_limited(tmp_path: Path) -> None:
    readings = Readings(Limit(1500))
    files = []
    for number in range(3):
        path = tmp_path / f"program{number}"
        path.write_bytes(with_symbols(1000 if number else 400, b"\0function\0"))
        files.append(opened(path))
        files[-1].readings = readings
    address = np.array([0x400000], np.uint64)
    assert [file.names(address) for file in files] == [["function"], ["function"], [None]]
    assert readings.symbols.used == 1400
    assert list(readings.remarks()) == ["symbols of program2 are left out: over 100 symbols"]
    files[1].close()
    assert readings.symbols.used == 400
    for file in (files[0], files[2]):
        file.close()
    assert readings.symbols.used == 0


def test_time_for_all_files_is_limited(tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(with_symbols(10, b"\0function\0"))
    file = opened(path)
    file.readings = Readings(seconds=Seconds(-1, 0))
    assert file.names(np.array([0x400000], np.uint64)) == [None]
    assert list(file.readings.remarks()) == ["symbols of program are left out: those of other files took too much time"]
    file.close()
